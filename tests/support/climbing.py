"""Climbs the states of a question: a session, a running turn, a live question, a detached one, an answered one."""

import datetime as dt
import json
import uuid
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from clarifications import asking, bundles, closing, discovering, late, responding
from clarifications.models import Claim
from clarifications.waiting import Keepalive
from tasks import tokens
from tasks.errors import translate
from tasks.models import Event, Membership, Role, Session, SessionState, Task, Token, TokenKind, Workspace
from tasks.principals import Principal
from tasks.registry import pending_action_of
from tests.support.scripted import Frame, ScriptedRunner
from tests.support.threads import Agent
from turns import admitting, background
from turns.models import Dispatch, Message, Turn

PUBLIC_TURN = {"id", "session_id", "started_at", "completed_at", "created_at"}


def questions(count: int = 1, **fields: Any) -> list[dict[str, Any]]:
    """Valid questions q1, q2, … with two options each; `fields` go into every one."""
    return [
        {
            "id": f"q{n}",
            "prompt": f"Which way {n}?",
            "options": [
                {"option_id": f"q{n}_a", "label": f"Left {n}", "description": "to the left"},
                {"option_id": f"q{n}_b", "label": f"Right {n}", "description": "to the right"},
            ],
            **fields,
        }
        for n in range(1, count + 1)
    ]


def answers(count: int = 1, pick: str = "a", text: str = "") -> dict[str, Any]:
    """An affirmative answer to `questions(count)`."""
    entries = [
        {"question_id": f"q{n}", "selected_options": [f"q{n}_{pick}"], "custom_text": text} for n in _upto(count)
    ]
    return {"answers": entries}


def _upto(count: int) -> range:
    return range(1, count + 1)


SKIP = {"rejected": True, "reject_reason": "not now"}


@dataclass(frozen=True)
class Outcome:
    """What REST would say: the status and the body."""

    status: int
    body: dict[str, Any]

    @property
    def code(self) -> str | None:
        return self.body.get("code")

    @property
    def short(self) -> tuple[int, Any]:
        """(200, claimed) or (status, code)."""
        return self.status, self.body["claimed"] if self.status == 200 else self.code


@dataclass
class Stage:
    """One workspace, one task, one session of the agent "demo", its runner, its agent and a person who may answer."""

    workspace: Workspace
    task: Task
    session: Session
    person: Principal
    agent: Principal
    runner: ScriptedRunner

    def send(self, content: str = "go", key: str | None = None) -> admitting.Admitted:
        return admitting.admit(self.session.pk, content, key)

    def ask(self, count: int = 1, raw: Any = None, context: str = "") -> "Question":
        asked = asking.ask(self.agent, str(self.session.pk), raw or questions(count), context)
        return Question(self, asked.pending_id, count)

    @property
    def turn(self) -> Turn:
        found = Turn.objects.current_of(self.session.pk)
        assert found is not None
        return found

    @property
    def dispatched(self) -> Frame:
        """The last prompt that the runner was given."""
        return self.runner.got("dispatch")[-1]

    def says(self, kind: str, /, **more: Any) -> None:
        """A word of the running prompt: ready, failed, frame."""
        self.runner.say(kind, self.dispatched, **more)

    def ready(self) -> None:
        self.says("ready", stop_reason="end_turn")

    def fresh(self) -> Session:
        return Session.objects.select_related("task").get(pk=self.session.pk)

    def pending_action(self) -> str | None:
        return pending_action_of(self.session.pk)

    def events(self, action: str = "") -> list[Event]:
        found = Event.objects.filter(task_id=self.task.pk).order_by("id")
        return list(found.filter(action=action) if action else found)

    def listed(self) -> list[str]:
        return [bundle["pending_id"] for bundle in discovering.list_pending(self.person)["bundles"]]

    def turns(self) -> int:
        return Turn.objects.filter(session=self.session).count()

    def dispatches(self) -> list[str]:
        """The states of the session's dispatches beyond the first prompt."""
        rows = Dispatch.objects.filter(session=self.session).order_by("reserved_at", "id")
        return list(rows.values_list("state", flat=True))[1:]


@dataclass
class Question:
    """A bundle of `count` questions that was asked on a stage."""

    stage: Stage
    pending_id: str
    count: int = 1

    @property
    def rows(self) -> list[Message]:
        return list(Message.objects.bundle(self.pending_id))

    @property
    def statuses(self) -> list[str]:
        return [row.status for row in self.rows]

    @property
    def state(self) -> str:
        return bundles.state_of(bundles.reach(self.stage.person, self.pending_id))

    @property
    def claims(self) -> list[Claim]:
        return list(Claim.objects.filter(pending_id=self.pending_id).order_by("responded_at"))

    def respond(self, payload: Any = None) -> Outcome:
        """Answers (the first option of each question unless told otherwise) and returns what the caller hears."""
        said = answers(self.count) if payload is None else payload
        return _heard(lambda: responding.respond(self.stage.person, self.pending_id, said))

    def late(self, key: str | None = None, payload: Any = None) -> Outcome:
        said = answers(self.count) if payload is None else payload
        try:
            admitted = late.answer(self.stage.person, self.pending_id, said, key)
        except Exception as error:  # noqa: BLE001 - as DRF's handler takes it
            return _refused(error)
        return Outcome(admitted.status, admitted.body)

    def cancel(self) -> Outcome:
        def call() -> dict[str, Any]:
            closing.cancel(self.stage.person, self.pending_id)
            return {"success": True, "claimed": None}

        return _heard(call)

    def waits(self, timeout_s: float = 30, *, writes: bool = True, on_keepalive: Keepalive | None = None) -> Agent:
        return Agent(self.stage.agent, self.pending_id, timeout_s, writes=writes, on_keepalive=on_keepalive)

    def detach(self) -> "Question":
        """Its turn ends, the question stands."""
        self.stage.ready()
        background.settle()
        assert self.state == "active_detached"
        return self


def _heard(call: Any) -> Outcome:
    try:
        return Outcome(200, call())
    except Exception as error:  # noqa: BLE001 - as DRF's handler takes it
        return _refused(error)


def _refused(error: Exception) -> Outcome:
    refusal = translate(error)
    return Outcome(refusal.status, refusal.body())


def build(runner: ScriptedRunner) -> Stage:
    """A stage with a session that has not begun."""
    owner = User.objects.create_user(f"owner-{uuid.uuid4().hex[:8]}")
    workspace = Workspace.objects.create(name="ours", owner=owner)
    answerer = User.objects.create_user(f"answerer-{uuid.uuid4().hex[:8]}")
    Membership.objects.create(workspace=workspace, user=answerer, role=Role.ANSWERER)
    task = Task.objects.create(
        workspace=workspace, title="a task", created_at=timezone.now(), updated_at=timezone.now()
    )
    session = add_session(task, is_primary=True)
    return Stage(workspace, task, session, Principal(user=answerer), agent_of(session), runner)


def add_session(task: Task, **fields: Any) -> Session:
    now = timezone.now()
    first = {"agent": "demo", "state": SessionState.CREATED, "created_at": now, "last_activity_at": now}
    return Session.objects.create(task=task, **{**first, **fields})


def agent_of(session: Session) -> Principal:
    text = tokens.mint(TokenKind.SESSION, session=session)
    return Principal(token=Token.objects.get(digest=tokens.digest(text)))


def run(stage: Stage) -> Stage:
    """The first prompt was taken: a turn runs."""
    assert stage.send().status == 201
    background.settle()
    return stage


def sibling(stage: Stage) -> Stage:
    """Another session of the same task, with a running turn."""
    session = add_session(stage.task)
    return run(Stage(stage.workspace, stage.task, session, stage.person, agent_of(session), stage.runner))


# --- rows by hand, for what no ordinary way leads to ---------------------------------------------------------------


def add_turn(session: Session, at: dt.datetime | None = None, **fields: Any) -> Turn:
    now = at or timezone.now()
    return Turn.objects.create(session=session, **{"started_at": now, "created_at": now, **fields})


def add_row(
    session: Session, turn_id: uuid.UUID | None, metadata: dict[str, Any] | None = None, **fields: Any
) -> Message:
    """A question row; `metadata` replaces single keys of an ordinary one, None takes a key away."""
    now = timezone.now()
    asked = questions()[0]
    whole: dict[str, Any] = {
        "pending_id": str(uuid.uuid4()),
        "question_id": "q1",
        "question": {**asked, "question_id": "q1", "title": ""},
        "question_index": 0,
        "question_total": 1,
        "context": "",
        "status": "pending",
    }
    marks = {key: value for key, value in {**whole, **(metadata or {})}.items() if value is not None}
    first = {
        "author_type": "agent",
        "type": "clarification_request",
        "content": "?",
        "created_at": now,
        "updated_at": now,
    }
    return Message.objects.create(session=session, turn_id=turn_id, metadata=marks, **{**first, **fields})


# --- over REST ----------------------------------------------------------------------------------------------------


class Rest:
    """REST in this process with a bearer token; a body is sent as JSON, bytes as they are."""

    def __init__(self, token: str) -> None:
        self.client = Client(headers={"Authorization": f"Bearer {token}"}, raise_request_exception=False)

    def __call__(self, method: str, path: str, body: Any = None) -> Outcome:
        raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        kind = {} if body is None else {"content_type": "application/json"}
        got: Any = self.client.generic(method, f"/api/v1{path}", raw, **kind)  # type: ignore[arg-type]
        return Outcome(got.status_code, json.loads(got.content) if got.content else {})


def rest_of(stage: Stage, who: str = "person") -> Rest:
    """REST as the stage's "person" (who may answer), its "owner", its "agent" or a "stranger"."""
    if who == "agent":
        return Rest(tokens.mint(TokenKind.SESSION, session=stage.session))
    users = {"person": stage.person.user, "owner": stage.workspace.owner}
    user = users.get(who) or User.objects.create_user(f"stranger-{uuid.uuid4().hex[:8]}")
    return Rest(tokens.mint(TokenKind.PERSONAL, user=user))


def by_hand() -> Stage:
    """A stage whose turn runs without any runner, for tests that need no commit."""
    stage = build(ScriptedRunner())
    Session.objects.filter(pk=stage.session.pk).update(state=SessionState.RUNNING)
    stage.session.refresh_from_db()
    add_turn(stage.session)
    return stage
