// The one entry: every module installs itself, then the page starts.

import { signedOut } from "./announce.js";
import * as activate from "./activate.js";
import * as attention from "./attention.js";
import * as composer from "./composer.js";
import * as drafts from "./drafts.js";
import { onFresh, startAll } from "./fresh.js";
import * as forms from "./forms.js";
import * as icons from "./icons.js";
import * as keys from "./keys.js";
import * as permission from "./permission.js";
import * as question from "./question.js";
import * as queue from "./queue.js";
import * as reconcile from "./reconcile.js";
import * as scroll from "./scroll.js";
import { connect } from "./socket.js";
import * as steps from "./steps.js";
import * as times from "./times.js";

const title = document.title;

onFresh("time[data-ago]", times.tell);
onFresh("a[data-session]", icons.meet);
onFresh("[data-open-questions]", (place) => {
  const number = Number(place.dataset.openQuestions);
  document.title = number ? `(${number}) ${title}` : title;
  attention.show(JSON.parse(place.dataset.names));
});

document.body.addEventListener("htmx:responseError", (event) => {
  if (event.detail.xhr.status === 401) signedOut();
});

[reconcile, question, steps, permission, keys, composer, queue, attention, forms, activate, scroll].forEach((module) => module.install());
startAll(document.body);
times.keepTelling();
drafts.sweep();
connect();
