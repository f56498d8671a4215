"""For the tests of an adapter's author: one pytest test for each conformance check.

    from drills.testing import AdapterConformance

    class TestMine(AdapterConformance):
        def adapter(self):
            return Mine()

The fleets of all checks are run once for a class, in this process, by its first test. A check that cannot be tried
because the adapter lacks the control is skipped.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest

from drills.conformance import ANSWER_WITHIN_S, CHECKS, Finding, check


class AdapterConformance:
    """Derive a `Test…` class from it and say in `adapter` what is tested; see the module's docstring."""

    answer_within_s: ClassVar[float] = ANSWER_WITHIN_S
    """Real seconds that a control may take until it is answered."""
    _findings: ClassVar[dict[type, dict[str, Finding]]] = {}

    def adapter(self) -> Any:
        """A new adapter, each time it is asked for."""
        raise NotImplementedError(f"{type(self).__name__} has to say in adapter() what it tests")

    def _finding(self, name: str) -> Finding:
        if type(self) not in self._findings:
            with tempfile.TemporaryDirectory(prefix="stopdrill-conformance-") as folder:
                found = check(self.adapter, Path(folder), answer_within_s=self.answer_within_s)
            self._findings[type(self)] = {finding.id: finding for finding in found}
        return self._findings[type(self)][name]


def _test(name: str, guards: str) -> Callable[[AdapterConformance], None]:
    def test(self: AdapterConformance) -> None:
        __tracebackhide__ = True
        finding = self._finding(name)
        if finding.ok is None:
            pytest.skip(finding.sentence)
        if not finding.ok:
            pytest.fail(f"{name}: {finding.sentence}", pytrace=False)

    test.__doc__ = f"{guards[0].upper()}{guards[1:]}."
    return test


for _one in CHECKS.values():
    setattr(AdapterConformance, f"test_{_one.id.replace('-', '_')}", _test(_one.id, _one.guards))
