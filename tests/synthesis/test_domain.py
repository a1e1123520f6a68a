import numpy as np
import pytest

from shoal.core import Kind
from shoal.errors import InputError, InternalError
from shoal.synthesis.domain import Domain, check_codes


def test_a_hierarchy_is_cut_between_its_highest_nodes_first():
    attribute = Domain("town", Kind.NOMINAL, 6, joins=(1, 1, 1, 0, 1))

    assert attribute.cut(0, 6) == 4
    assert attribute.cut(0, 4) == 2
    assert attribute.cut(4, 6) == 5


def test_without_a_hierarchy_the_middle_is_cut():
    assert Domain("age", Kind.NUMERIC, 101).cut(0, 101) == 50
    assert Domain("age", Kind.NUMERIC, 101).cut(7, 9) == 8


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"size": 0}, "at least one code"),
        ({"kind": Kind.NUMERIC, "size": 2**31 + 1}, "coarser grid"),
        ({"kind": Kind.DATE}, "numeric, ordinal or nominal"),
        ({"order": (0, 0, 1)}, "each code once"),
        ({"joins": (0,)}, "expected 2 heights"),
    ],
)
def test_impossible_attributes_are_refused(change, message):
    with pytest.raises(InputError, match=message):
        Domain(**{"name": "x", "kind": Kind.NOMINAL, "size": 3} | change)


@pytest.mark.parametrize("cells", [[0, 3], [-1, 0], [0.5, 1.0]])
def test_cells_outside_the_domain_stop_the_mechanism_without_being_shown(cells):
    with pytest.raises(InternalError) as caught:
        check_codes([np.array(cells)], [Domain("x", Kind.ORDINAL, 3)])

    assert "Column 'x'" in str(caught.value)
    assert "3" not in str(caught.value)
