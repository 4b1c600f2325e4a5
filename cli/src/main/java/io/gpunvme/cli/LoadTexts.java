package io.gpunvme.cli;

import io.gpunvme.cli.output.Counts;
import io.gpunvme.cli.output.Sizes;
import io.gpunvme.cli.output.Table;
import io.gpunvme.gpu.accel.Accelerators;
import io.gpunvme.models.LoadPlan;
import io.gpunvme.models.LoadReport;
import io.gpunvme.models.LoadedWeights;
import io.gpunvme.models.Weights;
import io.gpunvme.storage.path.MemberStats;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.ToLongFunction;

/** The output of {@code load}, for one model or several. */
final class LoadTexts {
  private static final double NANOS = 1e9;
  private static final String TENSOR = "tensor";

  private final PrintStream out;
  private final Accelerators.Choice choice;

  LoadTexts(PrintStream out, Accelerators.Choice choice) {
    this.out = out;
    this.choice = choice;
  }

  // ---- plans

  void plans(List<Weights> models, List<LoadPlan> plans) {
    for (int i = 0; i < models.size(); i++) {
      LoadPlan plan = plans.get(i);
      out.printf(
          "%s: %s, %s; reads %s; needs %s of the accelerator's memory, %s of it only while"
              + " it loads%n",
          models.get(i).name(),
          Counts.of(plan.tensors(), TENSOR),
          Sizes.format(plan.bytes()),
          Sizes.format(plan.readBytes()),
          Sizes.format(plan.gpuBytes()),
          Sizes.format(plan.ringBytes()));
    }
    if (models.size() > 1) {
      out.printf(
          "total: %s, %s; reads %s; %s of tensors stay in memory%n",
          Counts.of(sum(plans, LoadPlan::tensors), TENSOR),
          Sizes.format(sum(plans, LoadPlan::bytes)),
          Sizes.format(sum(plans, LoadPlan::readBytes)),
          Sizes.format(sum(plans, LoadPlan::tensorBytes)));
    }
  }

  static Map<String, Object> plansJson(List<Weights> models, List<LoadPlan> plans) {
    List<Map<String, Object>> list = new ArrayList<>();
    for (int i = 0; i < models.size(); i++) {
      Map<String, Object> one = new LinkedHashMap<>();
      one.put("model", models.get(i).name());
      plans.get(i).toJson().asMap().forEach(one::put);
      list.add(one);
    }
    Map<String, Object> total = new LinkedHashMap<>();
    total.put("tensors", sum(plans, LoadPlan::tensors));
    total.put("bytes", sum(plans, LoadPlan::bytes));
    total.put("read_bytes", sum(plans, LoadPlan::readBytes));
    total.put("tensor_bytes", sum(plans, LoadPlan::tensorBytes));
    total.put("ring_bytes", plans.stream().mapToLong(LoadPlan::ringBytes).max().orElse(0));
    Map<String, Object> all = new LinkedHashMap<>();
    all.put("models", list);
    all.put("total", total);
    return all;
  }

  private static <T> long sum(List<T> all, ToLongFunction<T> of) {
    return all.stream().mapToLong(of).sum();
  }

  // ---- reports

  void reports(List<Weights> models, List<LoadedWeights> loaded) {
    if (models.size() == 1) {
      report(models.getFirst(), loaded.getFirst().report());
      return;
    }
    out.printf("to %s (%s)%n", choice.accelerator().name(), choice.reason());
    Table table = new Table(0);
    table.row("model", "tensors", "bytes", "time", "rate", "verified", "path");
    for (int i = 0; i < models.size(); i++) {
      LoadReport r = loaded.get(i).report();
      row(table, models.get(i).name(), r, r.path());
    }
    row(table, "total", total(loaded), "");
    table.print(out);
  }

  private static void row(Table table, String name, LoadReport r, String path) {
    table.row(
        name,
        r.tensors(),
        Sizes.format(r.bytes()),
        "%.3f s".formatted(r.nanos() / NANOS),
        "%.2f GB/s".formatted(r.gigabytesPerSecond()),
        r.verified(),
        path);
  }

  private static LoadReport total(List<LoadedWeights> loaded) {
    List<LoadReport> all = loaded.stream().map(LoadedWeights::report).toList();
    return new LoadReport(
        "",
        "",
        Math.toIntExact(sum(all, LoadReport::tensors)),
        sum(all, LoadReport::bytes),
        sum(all, LoadReport::readBytes),
        sum(all, LoadReport::nanos),
        sum(all, LoadReport::allocateNanos),
        sum(all, LoadReport::verifyNanos),
        sum(all, LoadReport::retries),
        sum(all, LoadReport::tensorBytes),
        all.stream().mapToLong(LoadReport::ringBytes).max().orElse(0),
        Math.toIntExact(sum(all, LoadReport::verified)),
        List.of());
  }

  private void report(Weights weights, LoadReport r) {
    out.printf("%s to %s (%s)%n", weights.name(), choice.accelerator().name(), choice.reason());
    Table table = new Table(0);
    table.row("tensors", r.tensors());
    table.row("bytes", Sizes.format(r.bytes()));
    table.row("read", Sizes.format(r.readBytes()));
    table.row(
        "time",
        "%.3f s, %.3f s of it to allocate memory"
            .formatted(r.nanos() / NANOS, r.allocateNanos() / NANOS));
    table.row("rate", "%.2f GB/s".formatted(r.gigabytesPerSecond()));
    table.row("path", r.path() + ": " + r.mode());
    table.row(
        "memory",
        Sizes.format(r.tensorBytes()) + ", and " + Sizes.format(r.ringBytes()) + " while it loads");
    table.row("retries", r.retries());
    table.row("verified", r.verified() + " of " + Counts.of(r.tensors(), TENSOR));
    for (MemberStats m : r.members()) {
      table.row(
          m.name(),
          "%s, %.2f GB/s %s"
              .formatted(
                  Sizes.format(m.bytes()),
                  m.gigabytesPerSecond(),
                  m.failure().isEmpty() ? m.slow() : m.failure()));
    }
    table.print(out);
  }

  Map<String, Object> reportsJson(List<Weights> models, List<LoadedWeights> loaded) {
    List<Map<String, Object>> list = new ArrayList<>();
    for (int i = 0; i < models.size(); i++) {
      Map<String, Object> one = new LinkedHashMap<>();
      one.put("model", models.get(i).name());
      one.put("format", models.get(i).format());
      loaded.get(i).report().toJson().asMap().forEach(one::put);
      list.add(one);
    }
    Map<String, Object> all = new LinkedHashMap<>();
    all.put("accelerator", choice.accelerator().name());
    all.put("accelerator_reason", choice.reason());
    all.put("models", list);
    Map<String, Object> total = new LinkedHashMap<>(total(loaded).toJson().asMap());
    List.of("path", "mode", "members", "slowest").forEach(total::remove);
    all.put("total", total);
    return all;
  }
}
