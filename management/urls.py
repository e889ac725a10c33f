"""The management API's routes: each below `/management/v1` and, as the shorter old form, below `/management`."""

from django.urls import include, path

from management import grants, projects, server, users, warehouses

routes = [*server.routes, *users.routes, *projects.routes, *warehouses.routes, *grants.routes]

urlpatterns = [path("v1/", include(routes)), *routes]
