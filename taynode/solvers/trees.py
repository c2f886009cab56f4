"""Rooted trees and the order conditions of Runge-Kutta methods.

A tree is the sorted tuple of its subtrees; `()` is a single node. A method with stages A and
weights b has order p if, for each tree with at most p nodes, the weights times the tree's
elementary weights of the stages sum to one over the tree's density (Butcher; Hairer, Norsett &
Wanner, II.2).
"""

import functools as ft
from collections.abc import Iterator
from fractions import Fraction

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
    """How many nodes a tree has."""
    return 1 + sum(num_nodes(subtree) for subtree in tree)


def density(tree: Tree) -> int:
    """The density of a tree: its number of nodes times the densities of its subtrees."""
    product = num_nodes(tree)
    for subtree in tree:
        product *= density(subtree)
    return product


def elementary_weights(tree: Tree, a: np.ndarray) -> np.ndarray:
    """For each stage of the matrix `a` the elementary weight of the tree."""
    weights = np.ones(len(a), dtype=a.dtype)
    for subtree in tree:
        weights = weights * (a @ elementary_weights(subtree, a))
    return weights


def violation(order: int, a: np.ndarray, b: np.ndarray) -> float:
    """The largest defect among the conditions of exactly this order."""
    return max(
        abs(float(b @ elementary_weights(tree, a)) - float(Fraction(1, density(tree))))
        for tree in trees(order)
    )
