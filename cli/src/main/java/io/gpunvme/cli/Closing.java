package io.gpunvme.cli;

import io.gpunvme.core.weights.Load;
import io.gpunvme.core.weights.LoadedWeights;
import io.gpunvme.core.weights.Weights;
import java.util.ArrayDeque;
import java.util.Deque;

/** Models and what was loaded of them, closed together, the last one first. */
final class Closing implements AutoCloseable {
  private final Deque<Runnable> all = new ArrayDeque<>();

  Weights add(Weights weights) {
    all.push(weights::close);
    return weights;
  }

  Load add(Load load) {
    all.push(load::close);
    return load;
  }

  LoadedWeights add(LoadedWeights loaded) {
    all.push(loaded::close);
    return loaded;
  }

  @Override
  public void close() {
    RuntimeException failure = null;
    while (!all.isEmpty()) {
      try {
        all.pop().run();
      } catch (RuntimeException e) {
        if (failure == null) {
          failure = e;
        } else {
          failure.addSuppressed(e);
        }
      }
    }
    if (failure != null) {
      throw failure;
    }
  }
}
