"""The development stack of `lakewarden dev` and `demo`: all servers below one data directory."""

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Self

from lakewarden.config.secrets import new_key
from standalone import commands, ports, remembered_ports
from standalone.errors import EmbeddedError
from standalone.identities import Identities, development_identities
from standalone.lock import DirectoryLock
from standalone.options import DevOptions
from standalone.postgres import EmbeddedPostgres
from standalone.private_files import write_private
from standalone.process import ManagedProcess
from standalone.process_tree import ProcessTree, refusal
from standalone.progress import Progress
from standalone.provisioning import ENGINE_PRIVILEGES, Credentials, ManagementClient, token_endpoint
from standalone.ready import (
    AdminCredentials,
    EngineCredentials,
    PersonCredentials,
    ReadyInfo,
    remove_ready_file,
    write_ready_file,
)
from standalone.s3.store import S3Store, open_store
from standalone.web_server import start_web_server

WAREHOUSE_NAME = "demo"
S3_WAREHOUSE_NAME = "demo-s3"
"""Another one, so that a data directory can be started with either."""
DEFAULT_PROJECT = "00000000-0000-0000-0000-000000000000"
_COMMAND_TIMEOUT_S = 300.0
_GRACE_S = 25.0
_PIPELINE_GRACE_S = 90.0
"""It flushes what is waiting, and then ends Spark."""


class DevelopmentStack:
    """PostgreSQL, issuer, server, worker and, where asked for, a pipeline: started in order, stopped together.

    `command` gives the command line of a Lakewarden command, `identities` the issuer's clients; tests replace
    them. Start it in the main thread: its children end with the thread that started them.
    """

    def __init__(
        self,
        options: DevOptions,
        *,
        command: Callable[..., Sequence[str]] = commands.lakewarden_command,
        identities: Callable[[Path], Identities] = development_identities,
    ) -> None:
        self.data_dir = options.data_dir.resolve()
        self._options = options
        self._command = command
        self._identities = identities
        self._progress = Progress(options.progress)
        self._tree = ProcessTree()
        self._ports = self.data_dir / "ports.json"
        self._local_root = self.data_dir / "warehouse"
        self._keys = self.data_dir / "secrets.keys"
        self._database_url: str | None = None
        self._issuer: str | None = None
        self._begin_pipeline: Callable[[], None] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> ReadyInfo:
        """Start everything in order; returns when a client can use it, and the ready file says how.

        `EmbeddedError` says why it cannot be; nothing runs then. Nor does anything after an interruption.
        """
        try:
            return self._start()
        except OSError as error:
            self.stop()
            raise refusal(error, data_dir=self.data_dir) from error
        except BaseException:
            self.stop()
            raise

    def require_alive(self) -> None:
        """Raises EmbeddedError with the end of its log if a child has ended."""
        self._tree.require_alive()

    def wait(self) -> None:
        """Return when a signal asks this process to stop (`signals.interrupting`).

        `EmbeddedError` when a child ends by itself, with the end of its log.
        """
        self._tree.wait()

    def start_pipeline(self) -> None:
        """Start a pipeline, unless there is one. The stack must be running."""
        if self._begin_pipeline is not None and not self._options.pipeline:
            self._begin_pipeline()

    def stop(self) -> None:
        """Stop everything and remove the ready file. Idempotent."""
        if self._tree.stop():
            self._progress.say("Stopped.")

    def _start(self) -> ReadyInfo:
        self._prepare()
        self._start_postgres()
        self._run("Database tables", "migrate")
        identities, issuer = self._start_issuer()
        admin = f"oidc~{identities.admin.subject}"
        self._run("First administrator", "bootstrap", "--admin", admin, "--admin-name", "Administrator")
        store = self._start_store() if self._options.warehouse == "s3" else None
        base_uri = self._start_server()
        self._start_worker()
        info = self._provision(identities, issuer=issuer, base_uri=base_uri, store=store)
        self._begin_pipeline = partial(self._start_pipeline, identities.pipeline, info)
        if self._options.pipeline:
            self._begin_pipeline()
        self._tree.require_alive()
        self._tree.on_stop(lambda: remove_ready_file(self._options.ready_path))
        write_ready_file(info, self._options.ready_path)
        return info

    def _prepare(self) -> None:
        self.data_dir.mkdir(mode=0o755, parents=True, exist_ok=True)
        lock = DirectoryLock(self.data_dir)
        lock.acquire()
        self._tree.on_stop(lock.release)
        self._options.check()
        (self._local_root / WAREHOUSE_NAME).mkdir(parents=True, exist_ok=True)
        if not self._keys.exists():
            write_private(self._keys, new_key("dev") + "\n")
        self._progress.say(f"Lakewarden in {self.data_dir}")

    def _start_postgres(self) -> None:
        with self._progress.step("PostgreSQL"):
            server = EmbeddedPostgres(self.data_dir)
            self._tree.on_stop(server.stop)
            server.start()
        self._tree.watch(server.process)
        self._database_url = server.url

    def _start_issuer(self) -> tuple[Identities, str]:
        state_dir = self.data_dir / "issuer"
        with self._progress.step("Development issuer"):
            identities = self._identities(state_dir)
            self._issuer = self._serve(
                "issuer",
                lambda port: self._command("issuer", "--port", str(port), "--state-dir", str(state_dir)),
                path="/.well-known/openid-configuration",
            )
        return identities, self._issuer

    def _start_store(self) -> S3Store:
        def start(make: Callable[[int], ManagedProcess], health: str) -> str:
            with self._progress.step("S3 server"):
                return self._adopt("s3", make, path=health)

        return open_store(self._options.s3, data_dir=self.data_dir, progress=self._options.progress, start=start)

    def _start_server(self) -> str:
        with self._progress.step("Server"):
            return self._serve(
                "server", lambda _: self._command("serve"), path="/health", fixed_port=self._options.port
            )

    def _start_worker(self) -> None:
        with self._progress.step("Worker"):
            worker = self._process("worker", self._command("work"))
            self._tree.adopt(worker)
            worker.start()

    def _start_pipeline(self, client: Credentials, info: ReadyInfo) -> None:
        settings = {
            "PIPELINE__CATALOG_URI": info.catalog_uri,
            "PIPELINE__OAUTH2_SERVER_URI": info.token_endpoint,
            "PIPELINE__CLIENT_ID": client.client_id,
            "PIPELINE__CLIENT_SECRET": client.client_secret,
            "PIPELINE__SCOPE": client.scope,
        }
        with self._progress.step("Pipeline"):
            pipeline = self._process("pipeline", self._command("pipeline"), more=settings, grace_s=_PIPELINE_GRACE_S)
            self._tree.adopt(pipeline)
            pipeline.start()

    def _provision(self, identities: Identities, *, issuer: str, base_uri: str, store: S3Store | None) -> ReadyInfo:
        admin, engine = identities.admin, identities.engine
        management_uri = f"{base_uri}/management"
        with self._progress.step("Warehouse and rights"):
            endpoint = token_endpoint(issuer)
            client = ManagementClient.sign_in(management_uri, endpoint, admin)
            if store is None:
                warehouse = client.ensure_warehouse(WAREHOUSE_NAME, base_path=self._local_root / WAREHOUSE_NAME)
            else:
                warehouse = client.ensure_s3_warehouse(S3_WAREHOUSE_NAME, store)
            for each in (engine, identities.pipeline):
                client.grant(
                    warehouse,
                    application=f"oidc~{each.subject}",
                    name=each.client_id,
                    privileges=ENGINE_PRIVILEGES,
                )
            client.make_administrator(f"oidc~{identities.user.subject}", name=identities.user.name)
        return ReadyInfo(
            catalog_uri=f"{base_uri}/catalog",
            management_uri=management_uri,
            console_uri=f"{base_uri}/console",
            token_endpoint=endpoint,
            issuer=issuer,
            admin=AdminCredentials(client_id=admin.client_id, client_secret=admin.client_secret),
            engine=EngineCredentials(
                client_id=engine.client_id, client_secret=engine.client_secret, scope=engine.scope
            ),
            person=PersonCredentials(username=identities.user.username, password=identities.user.password),
            project_id=DEFAULT_PROJECT,
            warehouse=warehouse,
            pid=os.getpid(),
            s3=None if store is None else store.described,
        )

    def _run(self, title: str, *arguments: str) -> None:
        """Run a Lakewarden command and wait for its end."""
        process = self._process(arguments[0], self._command(*arguments))
        with self._progress.step(title), process:
            if process.wait(_COMMAND_TIMEOUT_S) != 0:
                raise EmbeddedError(process.obituary(when="without success"))

    def _serve(
        self, name: str, command: Callable[[int], Sequence[str]], *, path: str, fixed_port: int | None = None
    ) -> str:
        """Start a Lakewarden web server and return its address."""
        return self._adopt(
            name, lambda port: self._process(name, command(port), port=port), path=path, fixed_port=fixed_port
        )

    def _adopt(
        self, name: str, make: Callable[[int], ManagedProcess], *, path: str, fixed_port: int | None = None
    ) -> str:
        """Start a web server and return its address; its port is remembered for the next run."""
        child, port = start_web_server(
            make,
            path=path,
            fixed_port=fixed_port,
            preferred_port=remembered_ports.recall(self._ports).get(name),
        )
        self._tree.adopt(child)
        remembered_ports.remember(self._ports, name=name, port=port)
        return f"http://{ports.HOST}:{port}"

    def _process(
        self,
        name: str,
        command: Sequence[str],
        *,
        port: int | None = None,
        more: Mapping[str, str] | None = None,
        grace_s: float = _GRACE_S,
    ) -> ManagedProcess:
        return ManagedProcess(
            f"`{name}`",
            command,
            log=self.data_dir / "logs" / f"{name}.log",
            environment=commands.environment(
                database_url=self._database_url,
                issuer=self._issuer,
                port=port,
                local_root=self._local_root,
                keys=self._keys,
                more=more,
            ),
            directory=Path("/"),
            grace_s=grace_s,
        )
