package io.gpunvme.tools.report;

import java.nio.file.Path;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * One run on one machine.
 *
 * @param file where it was read from
 * @param folder the name of the folder that the file lies in
 * @param machine what it ran on, by name, in the order of the file
 */
record ResultFile(
    Path file,
    String folder,
    Map<String, String> machine,
    String commit,
    String date,
    List<Result> results) {
  ResultFile {
    machine = Collections.unmodifiableMap(new LinkedHashMap<>(machine));
    results = List.copyOf(results);
  }

  /** What tells this run from the others of its machine. */
  String run() {
    return date + ", commit " + commit;
  }
}
