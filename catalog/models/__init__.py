"""The models of the catalog: namespaces, tables, views, generic tables, their tags and contracts."""

from catalog.models.data_contract import DataContract
from catalog.models.deletion import Deletion
from catalog.models.generic_table import GenericTable
from catalog.models.metrics import MetricsReport
from catalog.models.namespace import Namespace
from catalog.models.statistics import WarehouseStatistics
from catalog.models.tabular import Tabular, TabularDocument
from catalog.models.tag_attachment import TagAttachment

__all__ = [
    "DataContract",
    "Deletion",
    "GenericTable",
    "MetricsReport",
    "Namespace",
    "Tabular",
    "TabularDocument",
    "TagAttachment",
    "WarehouseStatistics",
]
