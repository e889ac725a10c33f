"""The models of the catalog: namespaces, tables and views."""

from catalog.models.deletion import Deletion
from catalog.models.metrics import MetricsReport
from catalog.models.namespace import Namespace
from catalog.models.statistics import WarehouseStatistics
from catalog.models.tabular import Tabular, TabularDocument

__all__ = ["Deletion", "MetricsReport", "Namespace", "Tabular", "TabularDocument", "WarehouseStatistics"]
