"""The models of the catalog: namespaces, tables, views and generic tables."""

from catalog.models.deletion import Deletion
from catalog.models.generic_table import GenericTable
from catalog.models.metrics import MetricsReport
from catalog.models.namespace import Namespace
from catalog.models.statistics import WarehouseStatistics
from catalog.models.tabular import Tabular, TabularDocument

__all__ = [
    "Deletion",
    "GenericTable",
    "MetricsReport",
    "Namespace",
    "Tabular",
    "TabularDocument",
    "WarehouseStatistics",
]
