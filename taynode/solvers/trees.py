"""Rooted trees and the order conditions of Runge-Kutta methods.

A tree is the sorted tuple of its subtrees; `()` is a single node. A method with stages A and
weights b has order p if, for each tree with at most p nodes, the sum of b times the elementary
weights of the tree is one over the density of the tree (Butcher; Hairer, Norsett & Wanner, II.2).
"""

import functools as ft
import math
from collections.abc import Iterator

import numpy as np


Tree = tuple  # of trees


@ft.cache
def trees(num_nodes: int) -> tuple[Tree, ...]:
    """All rooted trees with this number of nodes."""
    return tuple(sorted({tuple(sorted(forest)) for forest in _forests(num_nodes - 1)}))


def _forests(num_nodes: int) -> Iterator[tuple[Tree, ...]]:
    if num_nodes == 0:
        yield ()
    for first in range(1, num_nodes + 1):
        for tree in trees(first):
            for rest in _forests(num_nodes - first):
                yield (tree, *rest)


def num_nodes(tree: Tree) -> int:
    """The number of nodes of a tree."""
    return 1 + sum(num_nodes(subtree) for subtree in tree)


def density(tree: Tree) -> int:
    """The density of a tree: its number of nodes times the densities of its subtrees."""
    return num_nodes(tree) * math.prod(map(density, tree))


def elementary_weights(tree: Tree, a: np.ndarray) -> np.ndarray:
    """The elementary weight of a tree for each stage of the matrix `a`."""
    weights = np.ones(len(a), dtype=a.dtype)
    for subtree in tree:
        weights = weights * (a @ elementary_weights(subtree, a))
    return weights
