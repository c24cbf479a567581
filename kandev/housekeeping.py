"""What nobody needs any more: sent frames, old rate windows, abandoned drafts, dead instances. Nothing here is read
again by anything.
"""

import datetime as dt

from django.utils import timezone

from clarifications.models import Draft
from tasks.models import Instance, RateWindow
from turns.models import RunnerFrame

EVERY = dt.timedelta(hours=1)
KEPT = dt.timedelta(days=2)
DRAFTS_KEPT = dt.timedelta(days=90)
INSTANCES_KEPT = dt.timedelta(days=30)


def tidy() -> None:
    """Deletes by age, in one statement each; call it again and nothing more happens."""
    now = timezone.now()
    RunnerFrame.objects.filter(sent_at__lt=now - KEPT).delete()
    RateWindow.objects.filter(started_at__lt=now - KEPT).delete()
    Draft.objects.filter(updated_at__lt=now - DRAFTS_KEPT).delete()
    Instance.objects.filter(ended_at__lt=now - INSTANCES_KEPT).delete()
