"""Reports of runs with many steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from argosy.steps.record.restart import Point
from argosy.workflows.report.timeline import timeline


class Points(tuple[Point, ...]):
    """Steps that count how often somebody goes through all of them."""

    walks = 0

    def __iter__(self) -> Iterator[Point]:
        Points.walks += 1
        return super().__iter__()


def test_a_timeline_does_not_go_through_all_steps_for_each_of_them(story) -> None:
    story.at(0.0, "gang_created", attempt=1, gang="g", nnodes=1, nproc_per_node=1)
    story.at(0.0, "restart_began", attempt=1, restart=0, generation=1, restored_step=0)
    story.steps(1, 0, 1, 1000, 1.0, 1.0)
    story.at(1001.0, "restart_ended", attempt=1, restart=0, exit_code=0, last_step=1000)
    story.at(1002.0, "train_ended", exit_code=0)
    record = story.record()
    points = Points(record.restarts[0].points)
    assert len(points) == 1000
    Points.walks = 0
    timeline(replace(record, restarts=(replace(record.restarts[0], points=points),)))
    assert 0 < Points.walks < 20
