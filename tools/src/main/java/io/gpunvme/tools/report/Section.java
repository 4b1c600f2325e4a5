package io.gpunvme.tools.report;

import java.util.List;

/** Results of one run that belong together. */
record Section(String title, String run, List<Block> blocks) {
  Section {
    blocks = List.copyOf(blocks);
  }
}
