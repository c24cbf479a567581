"""Connects the layers: who fills which hook. Run once, when the applications are ready."""


def connect() -> None:
    """Registers the hooks of the higher layers with the lower ones."""
    _turns_into_tasks()
    _clarifications_into_turns()
    _clarifications_into_tasks()
    _pages()


def _turns_into_tasks() -> None:
    from tasks import points, registry
    from turns import hooks, permitting

    registry.register(permitting.KIND)
    points.session_ending.connect(hooks.session_ending)
    points.prompt_given.connect(hooks.prompt_given)
    points.move_blocked.connect(hooks.move_blocked)
    points.input_capable.connect(hooks.input_capable)


def _clarifications_into_turns() -> None:
    from clarifications import closing, hooks, watching
    from turns import points, timers

    points.turn_ending.connect(hooks.turn_ending)
    points.turn_cancelling.connect(hooks.turn_cancelling)
    points.outstanding.connect(hooks.outstanding)
    points.may_attempt.connect(hooks.may_attempt)
    points.dispatch_accepted.connect(hooks.dispatch_accepted)
    points.dispatch_published.connect(hooks.dispatch_published)
    points.dispatch_undone.connect(hooks.dispatch_undone)
    points.orphan_undone.connect(hooks.orphan_undone)
    points.activity.connect(watching.activity)
    points.message_deleted.connect(closing.message_deleted)
    timers.first_wait_due.connect(hooks.first_wait_due)


def _clarifications_into_tasks() -> None:
    from clarifications import closing, hooks
    from tasks import points, registry

    registry.register(hooks.KIND)
    points.session_ending.connect(closing.session_ending)
    points.session_ended.connect(hooks.session_ended)
    points.input_capable.connect(hooks.input_capable)


def _pages() -> None:
    from clarifications.pages import history
    from turns.pages import permissions

    history.connect()
    permissions.connect()
