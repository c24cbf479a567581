"""Who hears what, for every address: the one table of access; docs/access.md is made from it.

A name in braces is a thing of the one workspace: `open` a question that nobody waits for, `live` one with a waiter,
`past` one of an earlier turn, `token` a token of the owner. The columns, from the left, are `CALLERS` of `cast`.
A body that is as it should be goes along (`calling.BODIES`), so 200, 201, 204 and 504 mean that the caller may.
"""

REST = """
GET /api/v1/boot                                    401 200 200 200 200 200 200 200 200 200 200 200 401 401 200 200
GET /api/v1/workspaces                              401 200 200 200 200 200 200 200 200 200 200 200 401 401 200 200
POST /api/v1/workspaces                             401 201 201 201 201 201 201 201 201 403 403 403 401 401 403 201
GET /api/v1/workspaces/{workspace}                  401 404 200 200 200 200 404 200 404 404 404 404 401 401 200 200
PATCH /api/v1/workspaces/{workspace}                401 404 403 403 200 200 404 200 404 404 404 404 401 401 403 200
DELETE /api/v1/workspaces/{workspace}               401 404 403 403 204 204 404 204 404 404 404 404 401 401 403 204
GET /api/v1/workspaces/{workspace}/board            401 404 200 200 200 200 404 200 404 404 404 404 401 401 200 200
GET /api/v1/tasks                                   401 200 200 200 200 200 200 200 200 200 200 200 401 401 200 200
POST /api/v1/tasks                                  401 404 403 403 201 201 404 201 404 404 404 404 401 401 403 201
GET /api/v1/tasks/{task}                            401 404 200 200 200 200 404 200 404 200 200 404 401 401 200 200
PATCH /api/v1/tasks/{task}                          401 404 403 403 200 200 404 200 404 403 403 404 401 401 403 200
DELETE /api/v1/tasks/{task}                         401 404 403 403 204 204 404 204 404 403 403 404 401 401 403 204
POST /api/v1/tasks/{task}/move                      401 404 403 403 200 200 404 200 404 403 403 404 401 401 403 200
GET /api/v1/tasks/{task}/task-sessions              401 404 200 200 200 200 404 200 404 200 200 404 401 401 200 200
POST /api/v1/tasks/{task}/task-sessions             401 404 403 403 201 201 404 201 404 403 403 404 401 401 403 201
GET /api/v1/task-sessions/{session}                 401 404 200 200 200 200 404 200 404 200 404 404 401 401 200 200
POST /api/v1/task-sessions/{session}/complete       401 404 403 403 200 200 404 200 404 403 404 404 401 401 403 200
POST /api/v1/task-sessions/{session}/fail           401 404 403 403 200 200 404 200 404 403 404 404 401 401 403 200
POST /api/v1/task-sessions/{session}/cancel         401 404 403 403 200 200 404 200 404 403 404 404 401 401 403 200
GET /api/v1/task-sessions/{session}/turns           401 404 200 200 200 200 404 200 404 200 404 404 401 401 200 200
GET /api/v1/task-sessions/{session}/messages        401 404 200 200 200 200 404 200 404 200 404 404 401 401 200 200
POST /api/v1/task-sessions/{session}/messages       401 404 403 403 201 201 404 201 404 403 404 404 401 401 403 201
DELETE /api/v1/messages/{message}                   401 404 403 403 204 204 404 204 404 403 404 404 401 401 403 204
GET /api/v1/clarifications                          401 200 200 200 200 200 200 200 200 200 200 200 401 401 200 200
POST /api/v1/clarification/request                  401 404 403 403 201 201 404 201 404 201 404 404 401 401 403 201
GET /api/v1/clarification/{open}                    401 404 200 200 200 200 404 200 404 200 404 404 401 401 200 200
POST /api/v1/clarification/{open}/respond           401 404 403 200 200 200 404 200 404 403 404 404 401 401 403 200
POST /api/v1/clarification/{live}/cancel            401 404 403 200 200 200 404 200 404 200 404 404 401 401 403 200
POST /api/v1/clarification/{past}/late-answer       401 404 403 201 201 201 404 201 404 403 404 404 401 401 403 201
POST /api/v1/permissions/{permission}/answer        401 404 403 200 200 200 404 200 404 403 404 404 401 401 403 200
GET /api/v1/schema                                  200 200 200 200 200 200 200 200 200 200 200 200 401 401 200 200
GET /api/v1/docs                                    200 200 200 200 200 200 200 200 200 200 200 200 200 200 200 200
GET /api/                                           404 404 404 404 404 404 404 404 404 404 404 404 404 404 404 404
"""

# Pages know cookies alone: who comes with a token only is nobody, and his form has no CSRF token.
PAGES = """
GET /                                               302 200 200 200 200 200 200 200 302 302 302 302 302 302 302 200
GET /tasks                                          302 200 200 200 200 200 200 200 302 302 302 302 302 302 302 200
GET /tasks/{task}                                   302 404 200 200 200 200 404 200 302 302 302 302 302 302 302 200
GET /tasks/{task}/open                              302 404 302 302 302 302 404 302 302 302 302 302 302 302 302 302
GET /sessions/{session}/transcript                  302 404 200 200 200 200 404 200 302 302 302 302 302 302 302 200
GET /sessions/{session}/composer                    302 404 200 200 200 200 404 200 302 302 302 302 302 302 302 200
GET /sessions/{session}/queue                       302 404 200 200 200 200 404 200 302 302 302 302 302 302 302 200
GET /sessions/{session}/questions                   302 404 200 200 200 200 404 200 302 302 302 302 302 302 302 200
GET /sessions/{session}/permissions                 302 404 200 200 200 200 404 200 302 302 302 302 302 302 302 200
GET /agents                                         302 200 200 200 200 200 200 200 302 302 302 302 302 302 302 200
GET /questions                                      302 200 200 200 200 200 200 200 302 302 302 302 302 302 302 200
GET /questions/count                                302 200 200 200 200 200 200 200 302 302 302 302 302 302 302 200
GET /questions/{past}/late                          302 404 200 200 200 200 404 200 302 302 302 302 302 302 302 200
POST /questions/{open}/answer                       302 404 403 200 200 200 404 200 403 403 403 403 403 403 403 200
PUT /questions/{open}/draft                         302 404 403 204 204 204 404 204 403 403 403 403 403 403 403 404
DELETE /questions/{open}/draft                      302 404 204 204 204 204 404 204 403 403 403 403 403 403 403 204
GET /settings/tokens                                302 200 200 200 200 200 200 200 302 302 302 302 302 302 302 200
POST /settings/tokens                               302 302 302 302 302 302 302 302 403 403 403 403 403 403 403 200
POST /settings/tokens/{token}/revoke                302 404 404 404 404 302 404 404 403 403 403 403 403 403 403 404
GET /accounts/login/                                200 302 302 302 302 302 302 302 200 200 200 200 200 200 200 200
POST /accounts/login/                               302 302 302 302 302 302 302 302 403 403 403 403 403 403 403 302
POST /accounts/logout/                              302 302 302 302 302 302 302 302 403 403 403 403 403 403 403 302
GET /favicon.ico                                    302 302 302 302 302 302 302 302 302 302 302 302 302 302 302 302
GET /texts.js                                       200 200 200 200 200 200 200 200 200 200 200 200 200 200 200 200
"""

# The admin's own pages; `staff` has every permission of Django and no workspace.
ADMIN = """
GET /admin/                                         302 302 302 302 302 302 200 200 302 302 302 302 302 302 302 302
GET /admin/login/                                   302 403 403 403 403 403 302 302 302 302 302 302 302 302 302 302
POST /admin/logout/                                 302 302 302 302 302 302 302 302 403 403 403 403 403 403 403 302
GET /admin/password_change/                         302 302 302 302 302 302 200 200 302 302 302 302 302 302 302 302
GET /admin/password_change/done/                    302 302 302 302 302 302 200 200 302 302 302 302 302 302 302 302
GET /admin/r/{kind}/{user}/                         302 302 302 302 302 302 404 404 302 302 302 302 302 302 302 302
GET /admin/nowhere                                  302 302 302 302 302 302 404 404 302 302 302 302 302 302 302 302
GET /admin/jsi18n/                                  302 302 302 302 302 302 200 200 302 302 302 302 302 302 302 302
GET /admin/autocomplete/                            302 302 302 302 302 302 200 200 302 302 302 302 302 302 302 302
GET /admin/tasks/                                   302 302 302 302 302 302 200 200 302 302 302 302 302 302 302 302
GET /admin/auth/                                    302 302 302 302 302 302 200 200 302 302 302 302 302 302 302 302
POST /admin/tasks/workspace/{workspace}/delete/     302 302 302 302 302 302 302 200 403 403 403 403 403 403 403 302
POST /admin/tasks/task/{task}/delete/               302 302 302 302 302 302 302 200 403 403 403 403 403 403 403 302
"""

# Beside Django. A tool's and a subscription's code stands as the status that it has over REST.
BESIDE = """
GET /healthz                                        200 200 200 200 200 200 200 200 200 200 200 200 200 200 200 200
GET /readyz                                         200 200 200 200 200 200 200 200 200 200 200 200 200 200 200 200
GET /metrics                                        200 200 200 200 200 200 200 200 200 200 200 200 200 200 200 200
GET /api/v1/clarification/{open}/wait               401 404 403 403 504 504 404 504 404 504 404 404 401 401 403 504
POST /mcp list_pending_questions_kandev             401 200 200 200 200 200 200 200 200 401 401 401 401 401 200 200
POST /mcp list_tasks_kandev                         401 200 200 200 200 200 200 200 200 401 401 401 401 401 200 200
POST /mcp answer_question_kandev                    401 404 403 200 200 200 404 200 404 401 401 401 401 401 403 200
POST /mcp/session ask_user_question_kandev          401 401 401 401 401 401 401 401 401 400 400 401 401 401 401 401
WS /ws/                                             403 404 200 200 200 200 404 200 404 200 200 404 403 403 200 200
WS /ws/runner/                                      403 403 403 403 403 403 403 403 403 403 403 101 403 403 403 403
"""

# Each page of a model: staff, superuser; everybody else is sent to sign in (302).
#                               list     add      change   delete   history
MODELS = """
tasks/workspace                200,200  200,200  302,200  302,200  302,200
tasks/task                     200,200  403,403  302,200  302,200  302,200
tasks/session                  200,200  403,403  302,200  403,403  302,200
tasks/token                    200,200  403,403  302,200  403,403  302,200
tasks/instance                 200,200  403,403  200,200  403,403  200,200
tasks/event                    403,200  403,403  403,200  403,403  403,200
tasks/ratewindow               200,200  403,403  200,200  403,403  200,200
turns/turn                     200,200  403,403  302,200  403,403  302,200
turns/message                  200,200  403,403  302,200  403,403  302,200
turns/dispatch                 200,200  403,403  302,200  403,403  302,200
turns/admission                200,200  403,403  302,200  403,403  302,200
turns/timer                    200,200  403,403  302,200  403,403  302,200
turns/runner                   200,200  403,403  200,200  403,403  200,200
turns/runnerframe              403,200  403,403  403,200  403,403  403,200
clarifications/bundle          200,200  403,403  302,200  403,403  302,200
clarifications/claim           200,200  403,403  302,200  403,403  302,200
clarifications/waiterlease     200,200  403,403  302,200  403,403  302,200
clarifications/watchdog        200,200  403,403  302,200  403,403  302,200
auth/group                     200,200  200,200  200,200  200,200  200,200
auth/user                      200,200  200,200  200,200  200,200  200,200
"""
