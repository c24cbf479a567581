"""The hooks of this layer. Each says when it runs; `clarifications` connects in `kandev.wiring`."""

import datetime as dt
import uuid

from tasks.hooks import Hook
from tasks.models import Session
from turns.models import Dispatch, Message, Turn

# Inside the transaction that ends a turn, session locked, turn updated: (turn, reason, now).
turn_ending: Hook[Turn, str, dt.datetime] = Hook("turn_ending")
# Inside the transaction that sends a turn its cancel, session locked: (turn, now).
turn_cancelling: Hook[Turn, dt.datetime] = Hook("turn_cancelling")
# Whether a session owes something of the higher layer (an answer's hand-over, an open watchdog): (session_id) -> bool.
outstanding: Hook[uuid.UUID] = Hook("outstanding")
# Whether the higher layer's part of an attempt still stands; inside its transaction, session locked: (dispatch) ->
# bool.
may_attempt: Hook[Dispatch] = Hook("may_attempt")
# Inside the transaction that settles a dispatch as taken by the runner: (dispatch, now).
dispatch_accepted: Hook[Dispatch, dt.datetime] = Hook("dispatch_accepted")
# Inside the transaction that clears a published dispatch's markers (FINALIZE_WITH_MARKERS): (dispatch, session, now).
dispatch_published: Hook[Dispatch, Session, dt.datetime] = Hook("dispatch_published")
# Inside the transaction that removes a dispatch known never to have run: (dispatch, session, now).
dispatch_undone: Hook[Dispatch, Session, dt.datetime] = Hook("dispatch_undone")
# Inside the transaction of a runner's frame: (turn, kind, now). Kinds that count are message, thinking, tool and ready.
activity: Hook[Turn, str, dt.datetime] = Hook("activity")
# After the commit that undid a dispatch: (dispatch).
dispatch_undone_after: Hook[Dispatch] = Hook("dispatch_undone_after")
# Inside the transaction that deletes a reservation of which only the turn row is left (R45): (turn, session, now).
orphan_undone: Hook[Turn, Session, dt.datetime] = Hook("orphan_undone")
# Inside the transaction that deleted a transcript row, session locked: (message, session, now).
message_deleted: Hook[Message, Session, dt.datetime] = Hook("message_deleted")
