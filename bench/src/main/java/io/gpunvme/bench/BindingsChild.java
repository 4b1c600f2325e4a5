package io.gpunvme.bench;

import io.gpunvme.tools.bench.BenchException;
import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/**
 * A program that measures one side and is told line by line when. It says {@code ready}, or {@code
 * missing} and why; it answers with numbers, or {@code error} and why. One that says nothing for
 * too long is killed. For one thread.
 */
final class BindingsChild implements AutoCloseable {
  private static final String READY = "ready";
  private static final String MISSING = "missing ";
  private static final String END = "end";

  private final String name;
  private final Duration deadline;
  private final Process process;
  private final BufferedWriter commands;

  /** Its lines; empty: there are no more. */
  private final BlockingQueue<Optional<String>> lines = new LinkedBlockingQueue<>();

  private boolean ending;

  /** Something that the side needs is not on this machine; the message says what. */
  static final class MissingException extends Exception {
    private static final long serialVersionUID = 1;

    MissingException(String message) {
      super(message);
    }
  }

  private BindingsChild(String name, Process process, Duration deadline) {
    this.name = name;
    this.process = process;
    this.deadline = deadline;
    commands = process.outputWriter(StandardCharsets.UTF_8);
    Thread.ofPlatform().daemon().name("bindings-" + name).start(this::listen);
  }

  /**
   * Starts it and waits until it is ready.
   *
   * @param name for messages
   * @param environment added to this process's; an empty value: the variable is taken away
   * @param deadline for each answer
   * @throws MissingException if it is not there, or says that something is missing
   * @throws BenchException if it fails
   */
  static BindingsChild start(
      String name, List<String> command, Map<String, String> environment, Duration deadline)
      throws MissingException {
    ProcessBuilder builder = new ProcessBuilder(command);
    builder.redirectError(ProcessBuilder.Redirect.INHERIT);
    builder.environment().putAll(environment);
    builder.environment().values().removeIf(String::isEmpty);
    Process process;
    try {
      process = builder.start();
    } catch (IOException e) {
      throw new MissingException(String.valueOf(e.getMessage()));
    }
    BindingsChild child = new BindingsChild(name, process, deadline);
    try {
      child.awaitReady();
    } catch (MissingException | RuntimeException e) {
      child.kill();
      throw e;
    }
    return child;
  }

  private void awaitReady() throws MissingException {
    String line = answer("to get ready");
    if (line.startsWith(MISSING)) {
      throw new MissingException(line.substring(MISSING.length()));
    }
    if (!line.equals(READY)) {
      throw failed("said '" + line + "'");
    }
  }

  private void listen() {
    try (BufferedReader reader = process.inputReader(StandardCharsets.UTF_8)) {
      for (String line = reader.readLine(); line != null; line = reader.readLine()) {
        lines.add(Optional.of(line));
      }
    } catch (IOException e) {
      // It was killed, which is an end as well.
    }
    lines.add(Optional.empty());
  }

  /**
   * Has it do something.
   *
   * @return the numbers that it answers, one or more, all &gt; 0
   * @throws BenchException if it fails, ends, or does not answer in time
   */
  double[] ask(String command) {
    tell(command);
    String line = answer("to " + command);
    double[] numbers;
    try {
      numbers = Stream.of(line.split(" ")).mapToDouble(Double::parseDouble).toArray();
    } catch (NumberFormatException e) {
      throw failed("said '" + line + "'");
    }
    for (double number : numbers) {
      if (!(number > 0 && number < Double.POSITIVE_INFINITY)) {
        throw failed("answered '" + line + "' to " + command);
      }
    }
    return numbers;
  }

  private void tell(String command) {
    try {
      commands.write(command + "\n");
      commands.flush();
    } catch (IOException e) {
      // It has ended; what it said before says why.
    }
  }

  private String answer(String doing) {
    Optional<String> line;
    try {
      line = lines.poll(deadline.toMillis(), TimeUnit.MILLISECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw failed("was interrupted");
    }
    if (line == null) {
      throw failed("took more than %d s %s and was ended".formatted(deadline.toSeconds(), doing));
    }
    return line.orElseThrow(() -> failed("ended instead, with code " + exitCode()));
  }

  private int exitCode() {
    return waited() ? process.exitValue() : -1;
  }

  private BenchException failed(String how) {
    ending = true;
    kill();
    return new BenchException(name + ": the program " + how);
  }

  /**
   * Ends it.
   *
   * @throws BenchException if it fails at its end, or does not come to it
   */
  @Override
  public void close() {
    if (ending) {
      return;
    }
    ending = true;
    tell(END);
    if (!waited()) {
      throw failed("did not end within " + deadline.toSeconds() + " s and was killed");
    }
    if (process.exitValue() != 0) {
      String last = last();
      throw failed("ended with code %d %s".formatted(process.exitValue(), last).strip());
    }
  }

  private String last() {
    try {
      Optional<String> line = lines.poll(deadline.toMillis(), TimeUnit.MILLISECONDS);
      return line == null ? "" : line.orElse("");
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return "";
    }
  }

  private boolean waited() {
    try {
      return process.waitFor(deadline.toMillis(), TimeUnit.MILLISECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return false;
    }
  }

  /** Whether it is gone, which a killed one is soon. */
  boolean ended() {
    return waited();
  }

  private void kill() {
    process.destroyForcibly();
  }
}
