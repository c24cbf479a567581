"""What the OpenAPI page says of clarifications; the checks themselves are in `questions` and `answers`."""

from typing import Any

from rest_framework import serializers

from tasks import fields


def sized(least: int, most: int) -> dict[str, Any]:
    """The bounds of a list, which DRF passes on to the list's own serializer."""
    return {"min_length": least, "max_length": most}


class OptionIn(serializers.Serializer[Any]):
    option_id = serializers.CharField(required=False, max_length=200)
    label = serializers.CharField()  # type: ignore[assignment]
    description = serializers.CharField()
    recommended = serializers.BooleanField(required=False)


class QuestionIn(serializers.Serializer[Any]):
    id = serializers.CharField(required=False, max_length=200)
    title = serializers.CharField(required=False, allow_blank=True)
    prompt = serializers.CharField()
    options = OptionIn(many=True, **sized(2, 6))
    multi_select = serializers.BooleanField(required=False)


class AskIn(serializers.Serializer[Any]):
    session_id = serializers.UUIDField()
    questions = QuestionIn(many=True, **sized(1, 4))
    context = serializers.CharField(required=False, allow_blank=True)  # type: ignore[assignment]


class AskedOut(serializers.Serializer[Any]):
    pending_id = serializers.CharField()


class EntryIn(serializers.Serializer[Any]):
    question_id = serializers.CharField()
    selected_options = serializers.ListField(child=serializers.CharField(), required=False)
    custom_text = serializers.CharField(required=False, allow_blank=True, max_length=2000)


class AnswerIn(serializers.Serializer[Any]):
    answers = EntryIn(many=True, required=False)
    rejected = serializers.BooleanField(required=False)
    reject_reason = serializers.CharField(required=False, allow_blank=True, max_length=2000)


class LateIn(serializers.Serializer[Any]):
    answers = EntryIn(many=True)
    client_message_id = fields.Key()


class EntryOut(serializers.Serializer[Any]):
    question_id = serializers.CharField()
    selected_options = serializers.ListField(child=serializers.CharField())
    custom_text = serializers.CharField(allow_blank=True)


class ResponseOut(serializers.Serializer[Any]):
    pending_id = serializers.CharField()
    answers = EntryOut(many=True)
    rejected = serializers.BooleanField()
    reject_reason = serializers.CharField(allow_blank=True)
    responded_at = serializers.DateTimeField(allow_null=True)


class OutcomeOut(serializers.Serializer[Any]):
    success = serializers.BooleanField()
    claimed = serializers.BooleanField()
    status = serializers.ChoiceField(choices=["answered", "rejected"])
    delivery = serializers.ChoiceField(choices=["pending", "delivered", "undelivered"])
    response = ResponseOut()


class CancelledOut(serializers.Serializer[Any]):
    success = serializers.BooleanField()


class OptionOut(serializers.Serializer[Any]):
    option_id = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]
    description = serializers.CharField()
    recommended = serializers.BooleanField()


class QuestionOut(serializers.Serializer[Any]):
    question_id = serializers.CharField(allow_blank=True)
    title = serializers.CharField(allow_blank=True)
    prompt = serializers.CharField()
    multi_select = serializers.BooleanField()
    status = serializers.CharField()
    options = OptionOut(many=True)
    response = EntryOut(required=False)


class BundleOut(serializers.Serializer[Any]):
    pending_id = serializers.CharField()
    session_id = serializers.UUIDField()
    task_id = serializers.UUIDField()
    turn_id = serializers.UUIDField(allow_null=True)
    state = serializers.ChoiceField(
        choices=["active_live", "active_detached", "delivery_claimed", "terminal", "superseded_history"]
    )
    context = serializers.CharField(allow_blank=True)  # type: ignore[assignment]
    created_at = serializers.DateTimeField()
    questions = QuestionOut(many=True)
