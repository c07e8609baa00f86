"""What a system needs to run a queue manager as a service: systemd's unit, a user, settings."""

import sys
from dataclasses import dataclass
from pathlib import Path

UNIT = """\
# Written by `rpcqm service install`.

[Unit]
Description=MSMQ-compatible queue manager
Documentation=man:systemd.exec(5)
After=network-online.target
Wants=network-online.target

[Service]
Type=notify
ExecStart={command} serve --config {configuration}
ExecReload=/bin/kill -HUP $MAINPID
User={user}
Group={user}
StateDirectory=rpcqm
StateDirectoryMode=0711
RuntimeDirectory=rpcqm
ConfigurationDirectory=rpcqm
UMask=0077
Restart=on-failure
WatchdogSec=60
TimeoutStartSec=300
LimitNOFILE=65536

# Our own bounds come to about 1.5 GiB; where they fail the rest of the machine lives on.
# There are under thirty threads, most of which resolve names of hosts.
MemoryHigh=70%
MemoryMax=80%
TasksMax=64

# The endpoint mapper's port, 135, is a privileged one; nothing else of root is needed.
AmbientCapabilities=CAP_NET_BIND_SERVICE
CapabilityBoundingSet=CAP_NET_BIND_SERVICE
NoNewPrivileges=yes
RestrictSUIDSGID=yes

# Files: what is read is read only, what is written is in the directories above.
ProtectSystem=strict
ProtectHome={protect_home}
PrivateTmp=yes
PrivateDevices=yes
PrivateMounts=yes
RemoveIPC=yes

# The kernel and other processes.
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectProc=invisible
ProcSubset=pid
LockPersonality=yes
MemoryDenyWriteExecute=yes
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources
SystemCallErrorNumber=EPERM

[Install]
WantedBy=multi-user.target
"""

TRIGGERS_UNIT = """\
# Written by `rpcqm triggers install`.

[Unit]
Description=Triggers of the MSMQ-compatible queue manager
After=rpcqm.service network-online.target
Wants=rpcqm.service network-online.target

[Service]
Type=notify
ExecStart={command} triggers run --data-dir /var/lib/rpcqm
User={user}
Group={user}
UMask=0077
Restart=on-failure

# What programs have begun ends with the service, also what has left their group.
KillMode=control-group
TimeoutStopSec=30

# The service and all programs that it runs.
MemoryHigh=40%
MemoryMax=50%
TasksMax=512
NoNewPrivileges=yes
RestrictSUIDSGID=yes
CapabilityBoundingSet=

# Programs may need more than this: `systemctl edit rpcqm-triggers` grants it.
ProtectSystem=full
ProtectHome={protect_home}
PrivateTmp=yes
PrivateDevices=yes
RemoveIPC=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
LockPersonality=yes
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6
SystemCallArchitectures=native

[Install]
WantedBy=multi-user.target
"""

SYSTEM_USER = """\
# Written by `rpcqm service install`.
u {user} - "rpcqm queue manager" /var/lib/rpcqm
"""

TRIGGERS_SYSTEM_USER = """\
# Written by `rpcqm triggers install`.
u {user} - "rpcqm triggers" /
"""

SETTINGS = """\
# The configuration of a queue manager that runs as a service.
# `rpcqm config check {configuration}` explains every mistake in it,
# `systemctl reload rpcqm` takes it over.

data_dir = "/var/lib/rpcqm"
host = "0.0.0.0"
epm_port = 135
"""

DEFAULT_USER = "rpcqm"
DEFAULT_TRIGGERS_USER = "rpcqm-triggers"
DEFAULT_CONFIGURATION = Path("/etc/rpcqm/rpcqm.toml")
HOMES = ("/home", "/root", "/run/user")


@dataclass(frozen=True, slots=True)
class ServiceFile:
    """One file to write; if `kept`, an existing file is not changed."""

    path: Path
    text: str
    kept: bool = False


def unit(command: Path, user: str = DEFAULT_USER) -> str:
    """The text of the unit, which can read a program in a home directory."""
    return UNIT.format(
        command=command,
        configuration=DEFAULT_CONFIGURATION,
        user=user,
        protect_home=_protect_home(command),
    )


def _protect_home(command: Path) -> str:
    at_home = any(part.is_relative_to(home) for home in HOMES for part in (command, _python()))
    return "read-only" if at_home else "yes"


def triggers_files(command: Path, user: str = DEFAULT_TRIGGERS_USER) -> list[ServiceFile]:
    """Everything that an installation of the service of triggers writes."""
    text = TRIGGERS_UNIT.format(command=command, user=user, protect_home=_protect_home(command))
    system_user = TRIGGERS_SYSTEM_USER.format(user=user)
    return [
        ServiceFile(Path("/etc/sysusers.d/rpcqm-triggers.conf"), system_user),
        ServiceFile(Path("/etc/systemd/system/rpcqm-triggers.service"), text),
    ]


def service_files(command: Path, user: str = DEFAULT_USER) -> list[ServiceFile]:
    """Everything that an installation writes."""
    settings = SETTINGS.format(configuration=DEFAULT_CONFIGURATION)
    return [
        ServiceFile(Path("/etc/sysusers.d/rpcqm.conf"), SYSTEM_USER.format(user=user)),
        ServiceFile(DEFAULT_CONFIGURATION, settings, kept=True),
        ServiceFile(Path("/etc/systemd/system/rpcqm.service"), unit(command, user)),
    ]


def _python() -> Path:
    return Path(sys.executable).resolve()
