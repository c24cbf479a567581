"""Torture: real server processes are killed, frozen and cut off while people, agents and a runner go on using them;
what they saw from outside is then held against the promises (`manage.py torture`)."""
