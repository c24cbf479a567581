"""The server around the views: settings, bodies, HEAD, the one sign-in."""
