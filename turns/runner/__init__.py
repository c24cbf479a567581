"""The runner: an independent program that runs ACP agents for a Kandev server. It imports no Django model."""

VERSION = "kandev-runner/1"
