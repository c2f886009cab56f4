import time, os, jax, pytest
import diffrax as dfx
from tests.quadrature import reference as ref, test_gradients as tg
import taynode as tn
def cpu(): 
    t=os.times(); return t.user+t.system
def test_prof():
    for nm in ("augmented","sampled","rows"):
        q=ref.QUADRATURES[nm]
        for kind,adj in ref.adjoints(1e-10).items():
            if nm=="rows" and kind in("direct","forward"): continue
            for wit in (True,False):
                point=tg.POINT[:-2] if isinstance(adj,dfx.BacksolveAdjoint) else tg.POINT
                d=jax.jacfwd if kind=="forward" else jax.grad
                if wit: fn=lambda x: tg.loss(x,q,adj)
                else:
                    def fn(x):
                        f,a,y,t0,t1=tg.unpack(x); s=ref.solve(ref.REGULARIZERS["r2"],q,field=f,args=a,y0=y,t0=t0,t1=t1,adjoint=adj); return s.ys.sum()+s.stats["penalty"],0.
                c0=cpu(); l=jax.jit(d(fn,has_aux=True)).lower(point); c1=cpu(); c=l.compile(); c2=cpu(); jax.block_until_ready(c(point)); c3=cpu()
                print(f"{nm} {kind} witness={wit} trace {c1-c0:.2f} compile {c2-c1:.2f} run {c3-c2:.2f}",flush=True)
