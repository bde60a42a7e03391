# SPDX-License-Identifier: Apache-2.0
import unittest

from inventory import Inventory


class InventoryTest(unittest.TestCase):
    def setUp(self):
        self.stock = Inventory()
        self.stock.add("bell", 3)

    def test_some_can_be_removed(self):
        self.stock.remove("bell", 2)
        self.assertEqual(self.stock.total(), 1)

    def test_the_last_one_can_be_removed(self):
        self.stock.remove("bell", 3)
        self.assertEqual(self.stock.total(), 0)

    def test_more_than_there_are_cannot(self):
        with self.assertRaises(ValueError):
            self.stock.remove("bell", 4)


if __name__ == "__main__":
    unittest.main()
