"""The management API's routes: each below `/management/v1` and, as the shorter old form, below `/management`."""

from django.urls import include, path

from management.grants import WarehouseGrants
from management.projects import ProjectList, Projects
from management.server import Bootstrap, Info
from management.users import Users, WhoAmI
from management.warehouses import OneWarehouse, Warehouses

routes = [
    path("info", Info.as_view()),
    path("bootstrap", Bootstrap.as_view()),
    path("whoami", WhoAmI.as_view()),
    path("user", Users.as_view()),
    path("project", Projects.as_view()),
    path("project-list", ProjectList.as_view()),
    path("warehouse", Warehouses.as_view()),
    path("warehouse/<str:warehouse_id>", OneWarehouse.as_view()),
    path("warehouse/<str:warehouse_id>/grants", WarehouseGrants.as_view()),
]

urlpatterns = [path("v1/", include(routes)), *routes]
