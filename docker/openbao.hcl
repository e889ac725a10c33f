# OpenBao for a trial: it initializes and unseals itself, so that secrets outlive it. Its key is below: not for production.
api_addr     = "http://openbao:8200"
cluster_addr = "http://openbao:8201"

storage "raft" {
  path    = "/openbao/file"
  node_id = "one"
}

listener "tcp" {
  address         = "0.0.0.0:8200"
  cluster_address = "0.0.0.0:8201"
  tls_disable     = true
}

seal "static" {
  current_key_id = "trial"
  current_key    = "dGhpcyBrZXkgaXMgcHVibGljOiBmb3IgYSB0cmlhbCE="
}

initialize "lakewarden" {
  request "engine" {
    operation = "update"
    path      = "sys/mounts/secret"
    data = {
      type    = "kv"
      options = { version = "2" }
    }
  }

  request "policy" {
    operation = "update"
    path      = "sys/policies/acl/lakewarden"
    data = {
      policy = <<-EOT
        path "secret/data/lakewarden/*" { capabilities = ["create", "read", "update"] }
        path "secret/metadata/lakewarden/*" { capabilities = ["list", "delete"] }
      EOT
    }
  }

  request "method" {
    operation = "update"
    path      = "sys/auth/userpass"
    data = {
      type = "userpass"
    }
  }

  request "user" {
    operation = "update"
    path      = "auth/userpass/users/lakewarden"
    data = {
      password       = "lakewarden-openbao"
      token_policies = ["lakewarden"]
    }
  }
}
