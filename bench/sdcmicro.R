# Runs sdcMicro's localSuppression on its own tables, for bench/sdcmicro.py.
#
# Rscript bench/sdcmicro.R OUT CASE ...   where a case is table:k:importance:column,column,...
# and the importance is "equal" (all 1), "default" (sdcMicro's own: columns with more values are
# blanked first), or numbers such as 1-2-3. Of case i, OUT/i-before.csv and OUT/i-after.csv hold the
# key variables; a line on standard output has its CPU seconds and the importance that was used.

suppressMessages(library(sdcMicro))

arguments <- commandArgs(trailingOnly = TRUE)
out <- arguments[1]
cases <- arguments[-1]
cat(as.character(packageVersion("sdcMicro")), "\n")
for (i in seq_along(cases)) {
  part <- strsplit(cases[i], ":")[[1]]
  data(list = part[1])
  keys <- strsplit(part[4], ",")[[1]]
  x <- get(part[1])[, keys]
  importance <- switch(part[3],
    equal = rep(1, length(keys)),
    default = NULL,
    as.numeric(strsplit(part[3], "-")[[1]])
  )
  begin <- proc.time()
  found <- localSuppression(x, keyVars = seq_along(keys), k = as.numeric(part[2]), importance = importance)
  spent <- proc.time() - begin
  write.csv(x, file.path(out, paste0(i - 1, "-before.csv")), row.names = FALSE)
  write.csv(found$xAnon, file.path(out, paste0(i - 1, "-after.csv")), row.names = FALSE)
  cat(spent[["user.self"]] + spent[["sys.self"]], ";", found$importance, "\n")
}
