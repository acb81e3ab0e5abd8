"""One line of a log without what launchers, pods and loggers put before it, and what those prefixes tell."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

_STAMP = r"\d{4}[-/]\d\d[-/]\d\d[T_ ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"
_PREFIX = re.compile(
    r"(?:"
    r"\x1b?\[\d+(?:;\d+)*m"  # colours
    r"|\s*\[(?:rank|default|trainer)? ?\d+(?:\|\d+)?\]:?\s?"  # [rank3]: [default0]: [trainer0|0]:
    r"|(?:\w{3} \w{3} +\d+ [\d:]+ \d{4})?\s*\[\d+(?:,\d+)?\]<std(?:err|out)>:\s?"  # mpirun, horovodrun
    r"|\s*\([\w<>.: ]*pid=\d+[^)]*\)\s"  # Ray
    rf"|\s*\[?{_STAMP}\]?:?(?: \|)?\s?"  # any logger
    r"|[A-Z][a-z]{2} +\d+ \d\d:\d\d:\d\d(?:\.\d+)?:?\s"  # syslog
    r"|[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ \S+?\] ?"  # glog, klog
    r"|\[?(?:INFO|ERROR|CRITICAL|WARNING|WARN|DEBUG|FATAL)\]?(?: *[:-]| {2,}|(?=\s))\s?"
    r"|(?:stderr|stdout)(?:: | [FP] )"
    r"|\[(?:torchrun|mpirun)\] ?"  # what starts the ranks, in the log of a pod of ours
    r"|\d{1,3}(?:\.\d{1,3}){3}(?: \[\d+\]|:)\s"  # host [rank]
    r"|\[[\w./-]+-\d+\]\s|\[(?:pod|[\w-]+)/[^\]]+\]\s"  # kubectl logs --prefix
    r"|\[\d*/?[\w./-]+ \(pid \d+\)\]\s?|\[[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\]\s?"  # task, id
    r"|[\w.-]+ +\|\|? "  # compose, Determined
    r"|\d{1,4}: (?=\S|\s{2})"  # srun -l
    r"|/container_\w+: |\[[\w.]+:\d+, rank=\d+\] ?"  # YARN, olmo
    r"|(?:\*{3}|Uncaught) (?=\w+(Error|Exception)\b)"  # pdb, what logs an exception that nobody caught
    r"|[│|] ?|> "
    r")"
)
_BOXED = re.compile(r"\s+[│|]\s*$")
_RANK = re.compile(
    r"\[(?:rank|default|trainer) ?(\d+)[\]|]|\bRank (\d+)[\]\b]|\[\d+,(\d+)\]<std|^\s*rank\s+: (\d+)|\brank (\d+)\b"
    r"|process rank (\d+)|local_rank: (\d+)",
    re.IGNORECASE,
)
_NODE = re.compile(
    r"^([\w.-]+):\d+:\d+ \[\d+\]|^\s*host\s+: ([\w.-]+)|\bON ([\w.-]+) CANCELLED|srun: error: ([\w.-]+): task"
    r"|kubelet, ([\w.-]+)|^\s*nodeName: \"?([\w.-]+)|^\s*Node:\s+([\w.-]+)/|on node ([\w.-]+) exited"
    r"|hostNodeName: ([\w.-]+)"
)
_TIME = re.compile(_STAMP)
_MOST_PREFIXES = 8


@dataclass(frozen=True)
class Line:
    """A line of ``file`` (its ``number`` counts from 1), as it stood there.

    ``silent``: no rule matches it; what it is about was not asked.
    """

    file: str
    number: int
    text: str
    silent: bool = False


def strip_prefixes(line: str) -> str:
    """The line without the ranks, pods and times that launchers put before it."""
    for _ in range(_MOST_PREFIXES):
        match = _PREFIX.match(line)
        if match is None or not match.end():
            break
        line = line[match.end() :]
    return _BOXED.sub("", line).rstrip()


def rank_of(line: str) -> int | None:
    """The rank that a line names as its own, None for none."""
    return _first_number(_RANK.search(line))


def node_of(line: str) -> str:
    """The node that a line names, "" for none."""
    match = _NODE.search(line)
    return next((group for group in match.groups() if group), "").rstrip(".") if match else ""


def time_of(line: str) -> float | None:
    """Seconds since 1970 of the line's time stamp (UTC where it names no zone); None without one in its beginning."""
    match = _TIME.search(line[:80])
    if match is None:
        return None
    try:
        moment = datetime.fromisoformat(match.group().replace("/", "-").replace(",", ".").replace("_", "T"))
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _first_number(match: re.Match[str] | None) -> int | None:
    return next((int(group) for group in match.groups() if group is not None), None) if match else None
