# what the official image does with these variables, as far as the trial's and the compose file's PostgreSQL use it
set -eu
[ "${1:-}" != postgres ] || shift
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  printf %s "$POSTGRES_PASSWORD" >/tmp/password
  initdb -D "$PGDATA" -U "$POSTGRES_USER" --pwfile=/tmp/password --auth=scram-sha-256 --encoding=UTF8 --locale=C.UTF-8 --no-sync
  rm /tmp/password
  echo 'host all all all scram-sha-256' >>"$PGDATA/pg_hba.conf"
  printf "CREATE DATABASE \"%s\";\n" "$POSTGRES_DB" | postgres --single -D "$PGDATA" postgres >/dev/null
  for script in /docker-entrypoint-initdb.d/*.sql; do
    [ ! -e "$script" ] || postgres --single -D "$PGDATA" postgres <"$script" >/dev/null
  done
fi
exec postgres -D "$PGDATA" -c listen_addresses='*' -c unix_socket_directories=/tmp "$@"
