"""Three steps in Metaflow: one makes a number, one adds to it, one shows it. Runs in a venv of its own."""

from metaflow import FlowSpec, step


class ThreeSteps(FlowSpec):
    @step
    def start(self):
        self.number = 20
        self.next(self.add)

    @step
    def add(self):
        self.number += 22
        self.next(self.end)

    @step
    def end(self):
        print("number", self.number)


if __name__ == "__main__":
    ThreeSteps()
