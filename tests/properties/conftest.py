"""Hypothesis profiles, chosen by the environment variable ``LAYOUTSIM_PROFILE``.

    LAYOUTSIM_PROFILE=ci python -m pytest tests/properties

* ``fast`` (default): a few examples a property, always the same ones.
* ``ci``: some hundred, always the same ones; three minutes of one core.
* ``nightly``: thousands, other ones every time; twenty times as many as ``ci``.
"""

import os

from hypothesis import HealthCheck, Phase, settings

_ALWAYS = {"deadline": None, "suppress_health_check": list(HealthCheck), "print_blob": True}

settings.register_profile("fast", settings(**_ALWAYS, max_examples=15, derandomize=True, database=None))
settings.register_profile("ci", settings(**_ALWAYS, max_examples=150, derandomize=True, database=None))
settings.register_profile("nightly", settings(**_ALWAYS, max_examples=3000, phases=tuple(Phase)))
settings.load_profile(os.environ.get("LAYOUTSIM_PROFILE", "fast"))
