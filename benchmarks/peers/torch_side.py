"""The contenders that run on PyTorch: `python torch_side.py PROBLEM`, with the Python of torch.

It is a script, because its environment has nothing of this package but the files beside it.
"""

# pyright: reportMissingImports=false
import sys

import torch
import torchdiffeq
import torchode
from problems import FIRST_STEP, Problem, PROBLEMS, TOLERANCE
from serving import Contender, serve


def main(name: str) -> None:
    """Try everything once, and wait."""
    torch.set_num_threads(1)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    problem = PROBLEMS[name]
    field = Field(problem).to(device)
    contenders = {}
    for title, solve in solves(problem, field).items():

        def forward(solve=solve):
            # A divergence needs gradients in the forward pass, too.
            with torch.set_grad_enabled(problem.kind != "mlp"):
                solve()
            _wait()

        def gradient(solve=solve):
            field.zero_grad()
            torch.stack([(x**2).mean() for x in solve()]).sum().backward()
            _wait()

        field.count = 0
        forward()
        nfe = field.count
        contenders[f"{title} gradient"] = Contender(gradient, nfe)
        if "adjoint" not in title:
            contenders[f"{title} forward"] = Contender(forward, nfe)
    where = torch.cuda.get_device_name() if device == "cuda" else "one thread"
    about = f"torch {torch.__version__}, torchdiffeq {torchdiffeq.__version__} on {where}"
    serve(contenders, about)


def _wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


class Field(torch.nn.Module):
    """The vector field of a problem, which counts its evaluations."""

    def __init__(self, problem: Problem):
        super().__init__()
        self.problem, self.count = problem, 0
        arrays = {name: torch.tensor(x) for name, x in problem.arrays().items()}
        for name in ("x", "noise"):
            self.register_buffer(name, arrays.pop(name))
        self.layers = torch.nn.ParameterDict(arrays)

    def network(self, t, y):
        """The network, with time as one more input of each layer."""
        image = self.problem.kind == "image"
        axis = 1 if image else -1
        for i in range(len(self.problem.sizes) - 1):
            hidden = torch.tanh(y) if i else y
            shape = list(y.shape)
            shape[axis] = 1
            # torchode has a time for each row.
            time = t.reshape(-1, *[1] * (y.ndim - 1)) if t.ndim else t
            inputs = torch.cat([hidden, time.expand(shape)], axis)
            weight, bias = self.layers[f"W{i}"], self.layers[f"b{i}"]
            if image:
                y = torch.nn.functional.conv2d(inputs, weight, bias, padding=1)
            else:
                y = inputs @ weight + bias
        return y

    def forward(self, t, state):
        """The slope of a state, or of a state and its density."""
        self.count += 1
        if self.problem.kind == "mlp":
            return self.network(t, state)
        x, _ = state
        with torch.enable_grad():
            x = x if x.requires_grad else x.detach().requires_grad_(True)
            velocity = self.network(t, x)
            if self.problem.kind == "flow":
                parts = [
                    torch.autograd.grad(velocity[:, i].sum(), x, create_graph=True)[0][:, i]
                    for i in range(2)
                ]
                return velocity, -sum(parts)
            (pulled,) = torch.autograd.grad(velocity, x, self.noise, create_graph=True)
        return velocity, -(pulled * self.noise).sum((1, 2, 3))


def solves(problem: Problem, field: Field) -> dict:
    """Functions that return the leaves of the last state."""
    y0 = field.x if problem.kind == "mlp" else (field.x, field.x.new_zeros(len(field.x)))
    times = field.x.new_tensor([0.0, 1.0])
    options = {
        "rtol": TOLERANCE,
        "atol": TOLERANCE,
        "method": "dopri5",
        "options": {"first_step": FIRST_STEP},
    }

    def by(odeint):
        def solve():
            ys = odeint(field, y0, times, **options)
            return [x[-1] for x in ys] if isinstance(ys, tuple) else [ys[-1]]

        return solve

    found = {}
    if not problem.per_sample:
        found["torchdiffeq"] = by(torchdiffeq.odeint)
        found["torchdiffeq, adjoint"] = by(torchdiffeq.odeint_adjoint)
    if problem.kind == "mlp":
        term = torchode.ODETerm(field)
        control = torchode.IntegralController(TOLERANCE, TOLERANCE, term=term)
        solver = torchode.AutoDiffAdjoint(torchode.Dopri5(term=term), control)
        rows = times.expand(len(field.x), 2)

        def by_torchode():
            start = torchode.InitialValueProblem(y0=y0, t_eval=rows)
            return [solver.solve(start).ys[:, -1]]

        found["torchode"] = by_torchode
    return found


if __name__ == "__main__":
    main(sys.argv[1])
