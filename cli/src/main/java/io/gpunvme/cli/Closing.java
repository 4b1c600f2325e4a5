package io.gpunvme.cli;

import io.gpunvme.base.CloseAll;
import java.util.ArrayList;
import java.util.List;

/** Things that a command has opened, closed together, the last one first. */
final class Closing implements AutoCloseable {
  private final List<AutoCloseable> all = new ArrayList<>();

  <T extends AutoCloseable> T add(T one) {
    all.add(one);
    return one;
  }

  @Override
  public void close() {
    CloseAll.newestFirst(all);
  }
}
