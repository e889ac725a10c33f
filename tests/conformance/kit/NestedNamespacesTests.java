package org.apache.iceberg.rest;

import org.apache.iceberg.catalog.Namespace;
import org.junit.jupiter.api.AfterEach;

/** The kit's tests of catalogs, with those of nested namespaces, which it leaves out for every server. */
public class NestedNamespacesTests extends RESTCompatibilityKitCatalogTests {
  @Override
  protected boolean supportsNestedNamespaces() {
    return true;
  }

  /** What the kit drops itself between tests is one level deep. */
  @AfterEach
  void emptyWarehouse() {
    catalog().listNamespaces().forEach(this::drop);
  }

  private void drop(Namespace namespace) {
    catalog().listNamespaces(namespace).forEach(this::drop);
    catalog().listTables(namespace).forEach(table -> catalog().dropTable(table, false));
    catalog().listViews(namespace).forEach(view -> catalog().dropView(view));
    catalog().dropNamespace(namespace);
  }
}
