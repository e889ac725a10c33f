"""The peak of a process's memory, as Linux counts it."""

from pathlib import Path

_RESET_PEAK = "5"  # proc_pid_clear_refs(5)


def forget_peak(pid: int) -> None:
    Path(f"/proc/{pid}/clear_refs").write_text(_RESET_PEAK, encoding="ascii")


def peak_mib(pid: int) -> int:
    """Resident memory at most, since `forget_peak`."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))) // 1024
