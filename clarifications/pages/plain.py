"""The form of a question without scripts: sent as a form, and told what became of it as a page."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from clarifications import bundles, responding
from clarifications.errors import NotActive
from clarifications.pages import reading
from clarifications.pages.reading import Bundle
from tasks import strictjson
from tasks.errors import Invalid, KandevError, ServerFault, Unavailable
from tasks.pages.base import PageRequest, page, show
from tasks.principals import Need, Principal


@page
def answer(request: PageRequest, principal: Principal, pending_id: str) -> HttpResponse:
    """Answers or skips as REST does, by the same function. What was typed is still in the form behind "back"."""
    known = bundles.reach(principal, pending_id, Need.ANSWER)
    asked = reading.bundle(known.rows, live=False)
    payload = _payload(request, asked)
    if any(question.open for question in asked.questions) and _says_nothing(payload):
        nothing = _("Choose an option or write something. To say nothing, use Skip.")
        return _refusal(request, principal, 400, {"words": nothing, "typed": True})
    try:
        body = responding.respond(principal, pending_id, payload)
    except (Invalid, NotActive, Unavailable, ServerFault) as error:
        return _refusal(request, principal, error.status, _refused(error))
    context: dict[str, object] = {"words": _words(body["claimed"], body["status"])}
    if not body["claimed"]:
        context["bundle"] = reading.bundle(bundles.reach(principal, pending_id).rows, live=False)
    return show(request, principal, "clarifications/told.html", context)


def _payload(request: HttpRequest, asked: Bundle) -> dict[str, Any]:
    """What a form of `clarifications/bundle.html` holds; its fields are named after the bundle's key and a number."""
    form = request.POST
    if "skip" in form:
        return {"answers": [], "rejected": True, "reject_reason": form.get("reason", "")}
    entries = [
        {
            "question_id": question.id,
            "selected_options": form.getlist(f"respond-{asked.key}-q{number}") if question.open else [],
            "custom_text": _lines(form.get(f"respond-{asked.key}-q{number}-text", "")) if question.open else "",
        }
        for number, question in enumerate(asked.questions, 1)
    ]
    return {"answers": entries, "rejected": False, "reject_reason": ""}


def _says_nothing(payload: dict[str, Any]) -> bool:
    """An untouched form: it may be sent by accident, and would take the question from everybody else."""
    given = (entry["selected_options"] or strictjson.visible(entry["custom_text"]) for entry in payload["answers"])
    return not payload["rejected"] and not any(given)


def _refusal(request: PageRequest, principal: Principal, status: int, context: dict[str, object]) -> HttpResponse:
    response = show(request, principal, "clarifications/told.html", context)
    response.status_code = status
    return response


def _lines(text: str) -> str:
    """A form sends a new line as two characters; a script, and so the limit, has one."""
    return text.replace("\r\n", "\n")


def _words(claimed: bool, status: str) -> str:
    if claimed:
        return _("Skipped. The agent is told.") if status == "rejected" else _("Your answer reached the agent.")
    if status == "rejected":
        return _("Somebody else skipped this question first.")
    return _("Somebody else answered first:")


def _refused(error: KandevError) -> dict[str, object]:
    """Only where the answer is surely nowhere does the page lead back to the form (D9: never twice)."""
    match error:
        case NotActive():
            return {"words": _("This question was no longer open. Nothing was sent."), "typed": True}
        case Invalid():
            return {"words": _("The answer is not valid, for example too long. Nothing was sent."), "typed": True}
        case Unavailable():
            return {"words": _("The agent did not get it. The question is still open: try again."), "typed": True}
    return {"words": _("Your answer is stored, but it is not certain yet that the agent has it."), "stored": True}
