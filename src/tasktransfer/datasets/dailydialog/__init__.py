"""DailyDialog."""
