"""Read-only analyses of modules: call graph, points-to sets, dataflow, aliasing, liveness."""
