package io.gpunvme.bench;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;

/** The result files of a folder, newest first. Immutable. */
final class BenchResults {
  /** By the file's name, which starts with the date; the machine decides between two of a day. */
  private static final Comparator<Path> NEWEST_FIRST =
      Comparator.comparing((Path p) -> p.getFileName().toString(), Comparator.reverseOrder())
          .thenComparing(Path::toString);

  /**
   * One file.
   *
   * @param machine the name of its folder
   */
  record Run(String machine, JsonObject json) {
    /** The date, YYYY-MM-DD. */
    String date() {
      return json.get("date").getAsString();
    }

    /** The commit that was measured. */
    String commit() {
      return json.get("commit").getAsString();
    }

    /** All results, in the order in which they were measured. */
    List<Result> results() {
      return json.getAsJsonArray("results").asList().stream()
          .map(JsonElement::getAsJsonObject)
          .map(result -> new Result(this, result))
          .toList();
    }

    /** The result with this id, if the run has one. */
    Optional<Result> find(String id) {
      return results().stream().filter(result -> result.id().equals(id)).findFirst();
    }
  }

  /** One result of a run. */
  record Result(Run run, JsonObject json) {
    /** Its id. */
    String id() {
      return json.get("id").getAsString();
    }

    /** The unit of all its values. */
    String unit() {
      return json.get("unit").getAsString();
    }

    /** The median. */
    double median() {
      return json.get("median").getAsDouble();
    }

    /** How many samples it has. */
    int samples() {
      return json.get("samples").getAsInt();
    }
  }

  private final List<Run> runs;

  private BenchResults(List<Run> runs) {
    this.runs = runs;
  }

  /**
   * Reads every result file below a folder.
   *
   * @throws IOException if a file cannot be read
   */
  static BenchResults read(Path folder) throws IOException {
    List<Path> files;
    try (Stream<Path> walk = Files.walk(folder)) {
      files = walk.filter(p -> p.toString().endsWith(".json")).sorted(NEWEST_FIRST).toList();
    }
    List<Run> runs = new ArrayList<>();
    for (Path file : files) {
      JsonObject json = JsonParser.parseString(Files.readString(file)).getAsJsonObject();
      Path absolute = file.toAbsolutePath();
      runs.add(new Run(absolute.getName(absolute.getNameCount() - 2).toString(), json));
    }
    return new BenchResults(List.copyOf(runs));
  }

  /** All runs, newest first. */
  List<Run> runs() {
    return runs;
  }

  /**
   * The newest result of a machine; of several on one day the one with the most samples.
   *
   * @throws IllegalArgumentException if there is none
   */
  Result newest(String machine, String id) {
    return runs.stream()
        .filter(run -> run.machine().equals(machine))
        .flatMap(run -> run.find(id).stream())
        .max(Comparator.comparing((Result r) -> r.run().date()).thenComparingInt(Result::samples))
        .orElseThrow(
            () -> new IllegalArgumentException("no result " + id + " of machine " + machine));
  }
}
