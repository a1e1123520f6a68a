"""Estimators for scikit-learn over the partitioners of `shoal.partition`.

`fit` groups the rows of X and `labels_` holds the groups. `fit_transform` replaces each row
by the mean of its group: that is the protected table. `transform` gives each row of new
data the mean of the group of the nearest row seen by `fit`, or of its cell; equal rows in its
result are not k-anonymous for that reason alone.

A fitted estimator keeps rows or values that it saw. It, and any pickle of it, is as
confidential as the data.

The estimators do not inherit from scikit-learn's `ClusterMixin`: its checks expect well separated
blobs to be recovered, which groups of k cannot do.
"""

from abc import abstractmethod
from typing import Any, Self

import numpy as np
import scipy
from sklearn.base import (
    BaseEstimator,
    OneToOneFeatureMixin,
    TransformerMixin,
)
from sklearn.utils.validation import (
    check_is_fitted,
    validate_data,
)

from shoal.core import Partition
from shoal.core._arrays import Floats, Ints
from shoal.partition import (
    cell_of,
    individual_rankings,
    insensitive,
    mdav,
    mondrian_tree,
    optimal_univariates,
    vmdav,
)
from shoal.partition.insensitive import Order


class _RowGroups(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the estimators that group whole rows.

    Attributes:
        labels_: group of each row of `fit`.
        centroids_: mean of each group.
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Group the rows of X; y is ignored."""
        del y
        X = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        self.labels_ = self._partition(X).labels
        self.centroids_ = _means(X, self.labels_)
        # Among equal rows in different groups, the first decides.
        self._rows, first = np.unique(X, axis=0, return_index=True)
        self._row_labels = self.labels_[first]
        return self

    def fit_predict(self, X: Any, y: Any = None) -> Ints:
        """Group the rows of X and return the group of each."""
        return self.fit(X, y).labels_

    def fit_transform(self, X: Any, y: Any = None) -> Floats:
        """Group the rows of X and return for each the mean of its group."""
        fitted = self.fit(X, y)
        return fitted.centroids_[fitted.labels_]

    def transform(self, X: Any) -> Floats:
        """Return for each row the mean of the group of the nearest row seen by `fit`."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        _, nearest = scipy.spatial.cKDTree(self._rows).query(X)
        return self.centroids_[self._row_labels[nearest]]

    @abstractmethod
    def _partition(self, X: Floats) -> Partition:
        """Group the rows."""


class MDAV(_RowGroups):
    """Group rows by `shoal.partition.mdav`.

    >>> MDAV(k=2).fit_transform([[0.0], [0.5], [5.0], [5.5]]).ravel()
    array([0.25, 0.25, 5.25, 5.25])
    """

    def __init__(self, k: int = 3) -> None:
        self.k = k

    def _partition(self, X: Floats) -> Partition:
        return mdav(X, self.k)


class VMDAV(_RowGroups):
    """Group rows by `shoal.partition.vmdav`.

    >>> VMDAV(k=2, gamma=1.0).fit_predict([[0.0], [0.1], [0.2], [5.0], [5.5]])
    array([1, 1, 1, 0, 0])
    """

    def __init__(self, k: int = 3, gamma: float | None = None) -> None:
        self.k = k
        self.gamma = gamma

    def _partition(self, X: Floats) -> Partition:
        return vmdav(X, self.k, gamma=self.gamma)


class Mondrian(_RowGroups):
    """Group rows by `shoal.partition.mondrian_tree`; a new row belongs to the cell that holds it.

    >>> Mondrian(k=2).fit([[0.0], [1.0], [8.0], [9.0]]).transform([[3.0], [-5.0]]).ravel()
    array([8.5, 0.5])
    """

    def __init__(self, k: int = 3) -> None:
        self.k = k

    def _partition(self, X: Floats) -> Partition:
        tree = mondrian_tree(X, self.k)
        self._cells = tree.above, tree.upto
        return tree.partition

    def transform(self, X: Any) -> Floats:
        """Return for each row the mean of the group whose cell of the cuts holds it."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return self.centroids_[cell_of(X, *self._cells)]


class Insensitive(_RowGroups):
    """Group rows by `shoal.partition.insensitive`, within public bounds.

    `lower` and `upper` are public, one number or one for each column. Values outside are
    clipped before the rows are ordered; means are those of the values as they are.

    >>> Insensitive(k=2, upper=10).fit_predict([[1.0], [9.0], [2.0], [8.0]])
    array([0, 1, 0, 1])
    """

    def __init__(
        self, k: int = 3, order: Order = "reference", lower: Any = 0.0, upper: Any = 1.0
    ) -> None:
        self.k = k
        self.order = order
        self.lower = lower
        self.upper = upper

    def _partition(self, X: Floats) -> Partition:
        lower = np.asarray(self.lower, np.float64)
        upper = np.asarray(self.upper, np.float64)
        scaled = (np.clip(X, lower, upper) - lower) / (upper - lower)
        return insensitive(scaled, self.k, order=self.order)


class _ColumnGroups(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the estimators that group each column by itself.

    Attributes:
        labels_: groups, one column for each column of `fit`.
        centroids_: means of the groups, one array per column.
    """

    def __init__(self, k: int = 3) -> None:
        self.k = k

    def fit(self, X: Any, y: Any = None) -> Self:
        """Group the values of each column of X; y is ignored."""
        del y
        X = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        parts = self._partitions(X)
        self.labels_ = np.column_stack([part.labels for part in parts])
        pairs = list(zip(X.T, self.labels_.T, strict=True))
        self.centroids_ = [_means(x[:, None], labels)[:, 0] for x, labels in pairs]
        self._edges = [_edges(x, labels) for x, labels in pairs]
        return self

    def fit_predict(self, X: Any, y: Any = None) -> Ints:
        """Group the values of each column and return the groups, one column each."""
        return self.fit(X, y).labels_

    def fit_transform(self, X: Any, y: Any = None) -> Floats:
        """Group each column of X and return for each value the mean of its group."""
        fitted = self.fit(X, y)
        pairs = zip(fitted.centroids_, fitted.labels_.T, strict=True)
        return np.column_stack([means[labels] for means, labels in pairs])

    def transform(self, X: Any) -> Floats:
        """Return for each value the mean of the group of the nearest value seen by `fit`."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        groups = [np.searchsorted(edges, x) for x, edges in zip(X.T, self._edges, strict=True)]
        pairs = zip(self.centroids_, groups, strict=True)
        return np.column_stack([means[labels] for means, labels in pairs])

    @abstractmethod
    def _partitions(self, X: Floats) -> tuple[Partition, ...]:
        """Group each column by itself."""


class IndividualRanking(_ColumnGroups):
    """Group each column by `shoal.partition.individual_ranking`.

    >>> IndividualRanking(k=2).fit_transform([[1.0], [4.0], [2.0], [3.0]]).ravel()
    array([1.5, 3.5, 1.5, 3.5])
    """

    def _partitions(self, X: Floats) -> tuple[Partition, ...]:
        return individual_rankings(X, self.k)


class OptimalUnivariate(_ColumnGroups):
    """Group each column by `shoal.partition.optimal_univariate`.

    >>> OptimalUnivariate(k=2).fit_predict([[1.0], [9.0], [1.1], [9.1], [1.2]]).ravel()
    array([0, 1, 0, 1, 0])
    """

    def _partitions(self, X: Floats) -> tuple[Partition, ...]:
        return optimal_univariates(X, self.k)


def _means(X: Floats, labels: Ints) -> Floats:
    total = np.zeros((int(labels.max()) + 1, X.shape[1]))
    np.add.at(total, labels, X)
    means: Floats = total / np.bincount(labels)[:, None]
    return means


def _edges(x: Floats, labels: Ints) -> Floats:
    """Midpoints between neighbouring groups of a column; a value on one is below it."""
    top = np.full(int(labels.max()) + 1, -np.inf)
    bottom = np.full(len(top), np.inf)
    np.maximum.at(top, labels, x)
    np.minimum.at(bottom, labels, x)
    below, above = top[:-1], bottom[1:]
    halfway = below + (above - below) / 2
    return np.where(halfway < above, halfway, below)
