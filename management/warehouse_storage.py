"""The storage of a warehouse: changes, and dry runs of changes."""

from typing import Any

from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from catalog.services import warehouse_storage
from lakewarden.authz.actions import WarehouseAction
from management.api import ManagementView
from management.base_serializers import Body
from management.warehouse_reports import ReportShape, report_body
from management.warehouses import CredentialField, ProfileField, WarehouseShape
from tenants import access


class StorageBody(Body):
    storage_profile = ProfileField()
    storage_credential = CredentialField(required=False)

    @property
    def parts(self) -> tuple[dict[str, Any], dict[str, Any] | None]:
        return self.get("storage_profile"), self.get("storage_credential")


class StorageCredentialBody(Body):
    new_storage_credential = CredentialField(required=False)


class WarehouseStorage(ManagementView):
    @extend_schema(request=StorageBody, responses={200: WarehouseShape})
    def post(self, _request: Request, warehouse_id: str) -> Response:
        """Change the storage profile of the warehouse, after testing access to it.

        What says where the files are (the base path, or the bucket and the key prefix) cannot change once the warehouse
        has namespaces. Without a credential, the warehouse keeps its present one.
        """
        body = self.body(StorageBody)
        granted = access.warehouse(self.context, warehouse_id, WarehouseAction.UPDATE_STORAGE)
        return Response(WarehouseShape.of(warehouse_storage.update(granted, *body.parts)))


class WarehouseStorageCredential(ManagementView):
    @extend_schema(
        request=StorageCredentialBody,
        responses={200: WarehouseShape},
    )
    def post(self, _request: Request, warehouse_id: str) -> Response:
        """Change the storage credential of the warehouse, after testing access with it.

        Running requests end with the previous credential, which is then deleted; all later ones use the new one.
        Without a credential, the present one is removed, if the storage can be used without. Storage of the type
        `local` has none: it is refused with 400.
        """
        credential = self.body(StorageCredentialBody).get("new_storage_credential")
        granted = access.warehouse(self.context, warehouse_id, WarehouseAction.UPDATE_STORAGE_CREDENTIAL)
        return Response(WarehouseShape.of(warehouse_storage.set_credential(granted, credential)))


class ValidateProfile(ManagementView):
    @extend_schema(request=StorageBody, responses={200: ReportShape})
    def post(self, _request: Request, warehouse_id: str) -> Response:
        """Run all checks of `POST …/storage` and return their results, without changing anything."""
        body = self.body(StorageBody)
        granted = access.warehouse(self.context, warehouse_id, WarehouseAction.UPDATE_STORAGE)
        return Response(report_body(warehouse_storage.validate(granted, *body.parts)))


class ValidateCredential(ManagementView):
    @extend_schema(request=StorageCredentialBody, responses={200: ReportShape})
    def post(self, _request: Request, warehouse_id: str) -> Response:
        """Run all checks of `POST …/storage-credential` and return their results, without changing anything."""
        body = self.body(StorageCredentialBody)
        granted = access.warehouse(self.context, warehouse_id, WarehouseAction.UPDATE_STORAGE_CREDENTIAL)
        return Response(report_body(warehouse_storage.validate_credential(granted, body.get("new_storage_credential"))))


class ValidateAccess(ManagementView):
    @extend_schema(request=None, responses={200: ReportShape})
    def post(self, _request: Request, warehouse_id: str) -> Response:
        """Test access to the current storage of the warehouse."""
        granted = access.warehouse(self.context, warehouse_id, WarehouseAction.UPDATE_STORAGE)
        return Response(report_body(warehouse_storage.validate_access(granted)))


routes = [
    path("warehouse/<str:warehouse_id>/storage", WarehouseStorage.as_view()),
    path("warehouse/<str:warehouse_id>/storage-credential", WarehouseStorageCredential.as_view()),
    path("warehouse/<str:warehouse_id>/storage/validate-profile", ValidateProfile.as_view()),
    path("warehouse/<str:warehouse_id>/storage/validate-credential", ValidateCredential.as_view()),
    path("warehouse/<str:warehouse_id>/storage/validate-access", ValidateAccess.as_view()),
]
