"""Question forms, the inbox of open questions, and questions as history in the transcript."""
