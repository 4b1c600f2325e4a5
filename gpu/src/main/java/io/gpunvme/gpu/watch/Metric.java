package io.gpunvme.gpu.watch;

/** What a process tells of its controllers; counters count since the controller was opened. */
public enum Metric {
  /** Has the value 1: its labels are what matters. */
  INFO("gpunvme_controller_info", "gauge", "A controller, and the program that has it open."),
  /** Commands that the controller completed; at the controller's side: that it fetched. */
  COMMANDS("gpunvme_commands_total", "counter", "I/O commands that were completed."),
  /** Commands that the controller was told of. */
  SUBMITTED("gpunvme_submitted_commands_total", "counter", "I/O commands that were submitted."),
  /** Bytes of commands that succeeded. */
  BYTES("gpunvme_bytes_total", "counter", "Bytes moved by I/O commands that succeeded."),
  /** Times from submission to completion. */
  SECONDS("gpunvme_command_seconds", "summary", "Time from submission to completion."),
  /** Commands that the controller has now. */
  OUTSTANDING("gpunvme_outstanding", "gauge", "I/O commands that the controller has now."),
  /** Commands that were submitted once more. */
  RETRIES("gpunvme_retries_total", "counter", "I/O commands that were repeated."),
  /** Climbs of the recovery ladder. */
  RECOVERIES("gpunvme_recoveries_total", "counter", "Recoveries of queue pairs."),
  /** Resets of the controller. */
  RESETS("gpunvme_resets_total", "counter", "Controller resets."),
  /** Commands to which a fault rule of an embedded controller was applied. */
  FAULTS("gpunvme_faults_total", "counter", "Commands with a fault that was asked for.");

  /** The label with the address of the controller. */
  public static final String DEVICE = "device";

  /** The label that says who counts: {@link #DRIVER} or {@link #CONTROLLER}. */
  public static final String SIDE = "side";

  /** A process that drives the controller. */
  public static final String DRIVER = "driver";

  /** A process that is the controller. */
  public static final String CONTROLLER = "controller";

  /** The label that tells controllers of one process from each other: a number. */
  public static final String NUMBER = "controller";

  /** The label with the identifiers of queue pairs. */
  public static final String QUEUE = "queue";

  /** The label that says who drives them: {@code cpu} or {@code gpu}. */
  public static final String INITIATOR = "initiator";

  /** The label of bytes: {@code read} or {@code write}. */
  public static final String DIRECTION = "direction";

  /** The label with the process; added by whoever reads several. */
  public static final String PID = "pid";

  /** The label with the program, of {@link #INFO}. */
  public static final String PROGRAM = "program";

  /** The label with the controller's model, of {@link #INFO}. */
  public static final String MODEL = "model";

  /** What follows the name of a summary's sum. */
  public static final String SUM = "_sum";

  /** What follows the name of a summary's count. */
  public static final String COUNT = "_count";

  private final String id;
  private final String type;
  private final String help;

  Metric(String id, String type, String help) {
    this.id = id;
    this.type = type;
    this.help = help;
  }

  /** Its name in the text. */
  public String id() {
    return id;
  }

  String type() {
    return type;
  }

  String help() {
    return help;
  }
}
