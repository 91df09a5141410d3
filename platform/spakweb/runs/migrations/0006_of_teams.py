from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0005_only_shown")]

    operations = [
        migrations.AddIndex(
            model_name="run",
            index=models.Index(fields=["team", "state", "ended_at"], name="runs_of_team_by_state"),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("holder", ""), _negated=True), fields=["lease_until"], name="runs_held"
            ),
        ),
    ]
