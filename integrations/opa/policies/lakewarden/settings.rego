# METADATA
# title: Settings
# description: They come from the environment of the OPA process; docs/how-to/trino-with-opa.md lists them.
package lakewarden.settings

environment := opa.runtime().env

url := trim_suffix(environment.LAKEWARDEN_URL, "/")

token_endpoint := environment.LAKEWARDEN_TOKEN_ENDPOINT

client := {"id": environment.LAKEWARDEN_CLIENT_ID, "secret": environment.LAKEWARDEN_CLIENT_SECRET}

default scope := ""

scope := environment.LAKEWARDEN_SCOPE

# Seconds for which a token is used again; shorter than its life.
default token_lifetime_s := 60

token_lifetime_s := to_number(environment.LAKEWARDEN_TOKEN_LIFETIME_S)

default timeout := "10s"

timeout := environment.LAKEWARDEN_TIMEOUT

# Trino's name of a catalog -> the warehouse, as in `<warehouse>` or `<project id>/<warehouse>`.
default catalogs := {}

catalogs := json.unmarshal(environment.TRINO_CATALOGS)

# What a user's name in Trino is preceded by in Lakewarden: the provider that confirms it.
default user_prefix := "oidc~"

user_prefix := environment.TRINO_USER_PREFIX

# Trino's own setting of nested namespaces, "true" or "false"; without it, names with a dot are refused.
nested_namespaces := environment.TRINO_NESTED_NAMESPACES

# Users of Trino who may do what concerns no catalog, such as see the queries of others.
default administrators := []

administrators := json.unmarshal(environment.TRINO_ADMINISTRATORS)

# Catalogs that are not in `catalogs`: refused unless this says "allow".
default other_catalogs := "refuse"

other_catalogs := environment.TRINO_OTHER_CATALOGS
