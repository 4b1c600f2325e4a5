package io.gpunvme.tools.ssd;

import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.nvme.spec.SmartLog;
import java.math.BigInteger;
import java.util.OptionalInt;

/**
 * What an SSD counts for itself, at one time (SMART / Health Information; Base 2.0, 5.16.1.3).
 *
 * @param celsius composite temperature; empty if it does not say
 * @param readCommands Host Read Commands since it was made
 * @param writeCommands Host Write Commands since it was made
 * @param mediaErrors Media and Data Integrity Errors since it was made
 * @param errorLogEntries Error Information Log Entries since it was made
 */
public record SsdState(
    OptionalInt celsius,
    BigInteger readCommands,
    BigInteger writeCommands,
    BigInteger mediaErrors,
    BigInteger errorLogEntries) {
  private static final int ZERO_CELSIUS = 273;

  /**
   * Asks for it.
   *
   * @throws io.gpunvme.nvme.NvmeException if the log page cannot be read
   */
  public static SsdState read(NvmeController controller) {
    SmartLog log = controller.logs().smart();
    int kelvin = log.getInt(SmartLog.COMPOSITE_TEMPERATURE);
    return new SsdState(
        kelvin == 0 ? OptionalInt.empty() : OptionalInt.of(kelvin - ZERO_CELSIUS),
        log.getBig(SmartLog.HOST_READ_COMMANDS),
        log.getBig(SmartLog.HOST_WRITE_COMMANDS),
        log.getBig(SmartLog.MEDIA_ERRORS),
        log.getBig(SmartLog.ERROR_LOG_ENTRIES));
  }
}
