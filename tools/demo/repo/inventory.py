# SPDX-License-Identifier: Apache-2.0
"""The stock of a small shop."""


class Inventory:
    def __init__(self):
        self.items = {}

    def add(self, name, count):
        self.items[name] = self.items.get(name, 0) + count

    def remove(self, name, count):
        """Takes items out. Raises ValueError if there are not enough."""
        if self.items.get(name, 0) <= count:
            raise ValueError(f"not enough {name}")
        self.items[name] -= count

    def total(self):
        return sum(self.items.values())
