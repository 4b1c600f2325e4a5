package io.gpunvme.cli;

import io.gpunvme.cli.output.OutputStreams;
import io.gpunvme.cli.output.Table;
import io.gpunvme.tools.doctor.CudaView;
import io.gpunvme.tools.doctor.Diagnosis;
import io.gpunvme.tools.doctor.Doctor;
import io.gpunvme.tools.doctor.FileView;
import io.gpunvme.tools.doctor.Finding;
import io.gpunvme.tools.doctor.NextStep;
import io.gpunvme.tools.doctor.Severity;
import io.gpunvme.tools.doctor.Way;
import io.gpunvme.tools.machine.Machine;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** {@code gpunvme doctor}. */
@Command(
    name = "doctor",
    description = {
      "List the obstacles to each way to move data on this machine.",
      "Only looks, changes nothing. Each finding names its effect and the command that fixes it.",
      "At the end, the commands that do something on this machine as it is.",
      "Findings are not failures: the exit code is 0."
    },
    footer = {
      "",
      "Examples:",
      "  gpunvme doctor",
      "  sudo gpunvme doctor",
      "  gpunvme doctor --json"
    })
final class DoctorCommand extends BaseCommand {
  private static final int INDENT = 2;

  @Mixin private final MachineOption machine = new MachineOption();

  @Option(names = "--no-cuda", hidden = true, description = "Do not ask CUDA.")
  private boolean noCuda;

  DoctorCommand(OutputStreams streams) {
    super(streams);
  }

  @Override
  int run() {
    CudaView cuda = noCuda ? new CudaView(false, "not asked", "", List.of()) : CudaView.look();
    Machine picture = machine.read();
    Diagnosis diagnosis = Doctor.examine(picture, cuda, FileView.look(OwnLibrary.folder()));
    ProgramName program = ProgramName.here();
    List<NextStep> now =
        NextStep.of(picture, cuda, program.own(), program.root(), ProgramName.quoted(someFile()));
    print(() -> printText(diagnosis, now), () -> object(diagnosis, now));
    return ExitCode.OK;
  }

  /** One that every machine with this program has. */
  private static String someFile() {
    return Path.of(System.getProperty("java.home"), "lib", "modules").toString();
  }

  private void printText(Diagnosis diagnosis, List<NextStep> now) {
    printVerdict(diagnosis);
    for (Severity severity : List.of(Severity.PROBLEM, Severity.NOTE, Severity.OK)) {
      diagnosis.findings().stream()
          .filter(f -> f.severity() == severity)
          .forEach(this::printFinding);
    }
    out().println();
    out().println("Ways to move data:");
    Table table = new Table(INDENT).row("STORAGE", "PATH", "INITIATOR", "PLACEMENT", "IN THE WAY");
    for (Way way : Way.values()) {
      String obstacles =
          diagnosis.obstacles(way).stream()
              .map(Finding::subject)
              .distinct()
              .collect(Collectors.joining(", "));
      table.row(
          way.storage(),
          way.path(),
          way.initiator(),
          way.placement(),
          obstacles.isEmpty() ? "nothing" : obstacles);
    }
    table.print(out());
    out().println();
    out()
        .printf(
            "%d problems, %d notes.%n",
            diagnosis.count(Severity.PROBLEM), diagnosis.count(Severity.NOTE));
    out().println();
    out().println("What you can do now:");
    Table steps = new Table(INDENT);
    now.forEach(step -> steps.row(step.command(), step.what()));
    steps.print(out());
  }

  /** What can be used as it is, and the first thing to do for more. */
  private void printVerdict(Diagnosis diagnosis) {
    Map<String, Set<String>> works = works(diagnosis);
    out()
        .println(
            works.isEmpty()
                ? "Nothing works here yet."
                : "Works here: "
                    + works.entrySet().stream()
                        .map(w -> w.getKey() + " (" + String.join(", ", w.getValue()) + ")")
                        .collect(Collectors.joining(", "))
                    + ".");
    diagnosis.findings().stream()
        .filter(f -> f.severity() == Severity.PROBLEM && !f.fix().isEmpty())
        .findFirst()
        .ifPresent(f -> out().printf("Next: %s: %s%n", f.subject(), f.fix()));
    out().println();
  }

  /** By storage: who can issue commands for it; by which paths the kernel's files are read. */
  private static Map<String, Set<String>> works(Diagnosis diagnosis) {
    Map<String, Set<String>> works = new LinkedHashMap<>();
    for (Way way : Way.values()) {
      if (diagnosis.obstacles(way).isEmpty()) {
        String how =
            way.path().equals("direct") ? way.initiator().toUpperCase(Locale.ROOT) : way.path();
        works.computeIfAbsent(way.storage(), _ -> new LinkedHashSet<>()).add(how);
      }
    }
    return works;
  }

  private void printFinding(Finding finding) {
    out().printf("%-7s  %s: %s%n", finding.severity(), finding.subject(), finding.cause());
    if (!finding.effect().isEmpty()) {
      out().println("         effect: " + finding.effect());
    }
    if (!finding.fix().isEmpty()) {
      out().println("         fix:    " + finding.fix());
    }
  }

  private static Map<String, Object> object(Diagnosis diagnosis, List<NextStep> now) {
    List<Object> findings = new ArrayList<>();
    for (Finding f : diagnosis.findings()) {
      Map<String, Object> one = new LinkedHashMap<>();
      one.put("id", f.id());
      one.put("severity", f.severity());
      one.put("subject", f.subject());
      one.put("cause", f.cause());
      one.put("effect", orNull(f.effect()));
      one.put("fix", orNull(f.fix()));
      findings.add(one);
    }
    List<Object> ways = new ArrayList<>();
    for (Way way : Way.values()) {
      Map<String, Object> one = new LinkedHashMap<>();
      one.put("storage", way.storage());
      one.put("path", way.path());
      one.put("initiator", way.initiator());
      one.put("placement", way.placement());
      List<Finding> obstacles = diagnosis.obstacles(way);
      one.put("open", obstacles.isEmpty());
      one.put("in_the_way", obstacles.stream().map(f -> f.id() + " " + f.subject()).toList());
      ways.add(one);
    }
    Map<String, Object> object = new LinkedHashMap<>();
    object.put("problems", diagnosis.count(Severity.PROBLEM));
    object.put("notes", diagnosis.count(Severity.NOTE));
    object.put("findings", findings);
    object.put("ways", ways);
    object.put(
        "now", now.stream().map(s -> Map.of("command", s.command(), "what", s.what())).toList());
    return object;
  }

  private static @Nullable String orNull(String text) {
    return text.isEmpty() ? null : text;
  }
}
