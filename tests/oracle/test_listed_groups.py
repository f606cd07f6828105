"""Groups by mesh axes, written out for the CPU compiler."""

import pytest

from layoutsim.oracle.listed_groups import with_listed_groups


@pytest.mark.parametrize(
    ("groups", "listed"),
    [
        ("mesh['a'=1,'b'=4] {'b'}", "{{0,1,2,3}}"),
        ("mesh['a'=2,'b'=2] {'a'}", "{{0,2},{1,3}}"),
        ("mesh['a'=2,'b'=2], device_ids=(3,1,0,2) {'b'}", "{{3,1},{0,2}}"),
        ("mesh['a'=2,'b'=2], device_ids=([2,2]T(1,0)) {'b'}", "{{0,2},{1,3}}"),
        ("[1,4]<=[4]", "[1,4]<=[4]"),
        ("{{0,1},{2,3}}", "{{0,1},{2,3}}"),
    ],
)
def test_groups_are_listed(groups: str, listed: str) -> None:
    line = "  g = f32[8] all-gather(p), channel_id=1, replica_groups={}, dimensions={{0}}, use_global_device_ids=true"

    assert with_listed_groups(line.format(groups)) == line.format(listed)
