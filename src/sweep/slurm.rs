//! A job array for Slurm: one task for each cell that is missing.

use super::Cell;

/// The script; `command` is what runs the sweep, word by word, without the choice of a cell.
pub fn script(name: &str, cells: &[&Cell], command: &[String]) -> String {
    let runs: Vec<String> = cells.iter().map(|cell| format!("  {}  # {cell}\n", quoted(&cell.run))).collect();
    let words: Vec<String> = command.iter().map(|word| quoted(word)).collect();
    let safe: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' }).collect();
    format!(
        "#!/bin/bash\n#SBATCH --job-name=fedbits-{safe}\n#SBATCH --array=0-{last}\n#SBATCH --cpus-per-task=1\n\n\
         # One task for every cell that was missing when this script was written. When all are done, the sweep without --only\n\
         # writes the table of them all.\ncells=(\n{runs})\n{words} --only \"${{cells[$SLURM_ARRAY_TASK_ID]}}\" \
         --jobs 1 --threads \"${{SLURM_CPUS_PER_TASK:-1}}\"\n",
        last = cells.len().saturating_sub(1),
        runs = runs.concat(),
        words = words.join(" ")
    )
}

/// A word as the shell reads it.
pub fn quoted(word: &str) -> String {
    let is_plain = !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./=:,+%@".contains(c));
    if is_plain { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_by_the_shell_as_they_were() {
        assert_eq!(quoted("uplink.ratio=0.1,0.2"), "uplink.ratio=0.1,0.2");
        assert_eq!(quoted("uplink={operator=\"sign\"}"), "'uplink={operator=\"sign\"}'");
        assert_eq!(quoted("it's"), "'it'\\''s'");
        assert_eq!(quoted(""), "''");
    }
}
